// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A complete program over libhone_rt: it goes on where a prompt ends, and prints the text as it comes.
//
//   cc generate.c -lhone_rt -o generate && ./generate MODEL.hone "def fibonacci(n):"

#include <hone/runtime/hone.h>

#include <stdio.h>
#include <stdlib.h>

// Ends the program with the message of the call that failed.
static void check(hone_status status) {
  if (status == HONE_OK)
    return;
  fprintf(stderr, "generate: %s\n", hone_last_error());
  exit(1);
}

// Prints the text that is certain so far; 0 asks for more.
static int print_piece(void *user, int64_t token, const char *text, size_t bytes) {
  (void)user;
  (void)token;
  fwrite(text, 1, bytes, stdout);
  fflush(stdout);
  return 0;
}

// The tokens of a text: the first call says how many there are, the second writes them.
static int64_t *encode(const hone_module *module, const char *text, size_t *count) {
  check(hone_module_encode(module, text, NULL, 0, count));
  int64_t *tokens = malloc((*count + 1) * sizeof *tokens);
  if (!tokens)
    exit(1);
  check(hone_module_encode(module, text, tokens, *count, count));
  return tokens;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: generate MODEL.hone PROMPT\n");
    return 1;
  }
  hone_module *module;
  check(hone_module_open(argv[1], &module));

  hone_session *session;
  check(hone_session_open(module, NULL, &session));

  size_t count;
  int64_t *prompt = encode(module, argv[2], &count);

  hone_generation_options options;
  hone_generation_options_init(&options);
  options.max_new_tokens = 64;
  check(hone_session_generate(session, prompt, count, &options, print_piece, NULL));
  printf("\n%lld positions in the session\n", (long long)hone_session_length(session));

  free(prompt);
  hone_session_close(session);
  hone_module_close(module);
  return 0;
}
