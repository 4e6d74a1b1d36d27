// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading and applying post-processors.

#include "text/post_processor.h"

#include "text/vocabulary.h"

namespace hone::text {

namespace {

absl::StatusOr<int32_t> readId(const Json &value, const std::string &path) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kLargestTokenId))
    return io::invalid("expected ", path, " to be a token id from 0 to ", kLargestTokenId, ", but got ", value.dump());
  return value.get<int32_t>();
}

/// The ids of one entry of "special_tokens".
absl::StatusOr<std::vector<int32_t>> readSpecialToken(const JsonObject &specials, const std::string &name) {
  HONE_ASSIGN_OR_RETURN(JsonObject special, specials.object(name));
  HONE_ASSIGN_OR_RETURN(const Json *ids, special.array("ids"));
  std::vector<int32_t> result;
  for (const Json &id : *ids) {
    HONE_ASSIGN_OR_RETURN(result.emplace_back(), readId(id, special.pathOf("ids")));
  }
  return result;
}

} // namespace

absl::StatusOr<PostProcessor> PostProcessor::readTemplate(const JsonObject &object) {
  PostProcessor result;
  int texts = 0;
  HONE_ASSIGN_OR_RETURN(auto pieces, object.objects("single"));
  HONE_ASSIGN_OR_RETURN(JsonObject specials, object.object("special_tokens"));
  for (const JsonObject &piece : pieces) {
    if (piece.find("Sequence")) {
      HONE_ASSIGN_OR_RETURN(JsonObject sequence, piece.object("Sequence"));
      HONE_ASSIGN_OR_RETURN(std::string name, sequence.string("id"));
      if (name != "A")
        return sequence.unsupported(sequence.pathOf("id"), name, "A (a template for one text has no second)");
      ++texts;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(JsonObject special, piece.object("SpecialToken"));
    HONE_ASSIGN_OR_RETURN(std::string name, special.string("id"));
    HONE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, readSpecialToken(specials, name));
    std::vector<int32_t> &side = texts == 0 ? result.before : result.after;
    side.insert(side.end(), ids.begin(), ids.end());
  }
  if (texts != 1)
    return io::invalid("expected ", object.pathOf("single"), " to hold the text once, but it holds it ", texts,
                       " times");
  return result;
}

/// BertProcessing and RobertaProcessing: "cls" before the text, "sep" after it, each [token, id].
absl::StatusOr<PostProcessor> PostProcessor::readPair(const JsonObject &object) {
  PostProcessor result;
  for (auto [key, side] : {std::pair("cls", &result.before), std::pair("sep", &result.after)}) {
    HONE_ASSIGN_OR_RETURN(const Json *pair, object.array(key));
    if (pair->size() != 2 || !(*pair)[0].is_string())
      return io::invalid("expected ", object.pathOf(key), " to be a token and its id, but got ", pair->dump());
    HONE_ASSIGN_OR_RETURN(side->emplace_back(), readId((*pair)[1], object.pathOf(key)));
  }
  return result;
}

absl::StatusOr<PostProcessor> PostProcessor::readSequence(const JsonObject &object) {
  PostProcessor result;
  HONE_ASSIGN_OR_RETURN(auto children, object.objects("processors"));
  for (const JsonObject &child : children) {
    HONE_ASSIGN_OR_RETURN(PostProcessor processor, read(child));
    if (processor.isPlain())
      continue;
    if (!result.isPlain())
      return object.unsupported("post_processor", "Sequence with several processors that add tokens", "one");
    result = std::move(processor);
  }
  return result;
}

absl::StatusOr<PostProcessor> PostProcessor::read(const JsonObject &object) {
  HONE_ASSIGN_OR_RETURN(std::string type, object.string("type"));
  if (type == "ByteLevel")
    return PostProcessor();
  if (type == "TemplateProcessing")
    return readTemplate(object);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return readPair(object);
  if (type == "Sequence")
    return readSequence(object);
  return object.unsupported("post_processor", type,
                            "BertProcessing, ByteLevel, RobertaProcessing, Sequence, TemplateProcessing");
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> ids, bool addSpecialTokens) const {
  if (!addSpecialTokens)
    return ids;
  ids.insert(ids.begin(), before.begin(), before.end());
  ids.insert(ids.end(), after.begin(), after.end());
  return ids;
}

} // namespace hone::text
