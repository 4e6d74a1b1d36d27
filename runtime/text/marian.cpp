// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SentencePiece's ModelProto, by the wire format of protocol buffers, and the tokenizer.json of its pieces.

#include "hone/text/marian.h"

#include "io/json.h"
#include "text/unicode.h"

#include "absl/strings/escaping.h"

#include <bit>
#include <map>
#include <optional>
#include <vector>

namespace hone::text {
namespace {

using io::invalid;

/// The fields of one message.
class Fields {
public:
  explicit Fields(std::string_view bytes) : rest(bytes) {}

  struct Field {
    uint64_t number = 0, value = 0; // `value` of a varint, or of four or eight bytes
    std::string_view bytes;         // of a string or a message
  };

  /// The next one, nothing at the end; isDamaged() afterwards says which end that was.
  std::optional<Field> next() {
    if (rest.empty() || damaged)
      return std::nullopt;
    Field field;
    uint64_t key = readVarint();
    field.number = key >> 3;
    switch (key & 7) {
    case 0:
      field.value = readVarint();
      break;
    case 1:
      field.value = readFixed(8);
      break;
    case 2:
      field.bytes = take(readVarint());
      break;
    case 5:
      field.value = readFixed(4);
      break;
    default:
      damaged = true;
    }
    return damaged ? std::nullopt : std::optional(field);
  }

  bool isDamaged() const { return damaged; }

private:
  std::string_view take(uint64_t count) {
    damaged |= count > rest.size();
    std::string_view taken = rest.substr(0, damaged ? 0 : count);
    rest.remove_prefix(taken.size());
    return taken;
  }

  uint64_t readFixed(int bytes) {
    std::string_view taken = take(static_cast<uint64_t>(bytes));
    uint64_t value = 0;
    for (size_t i = 0; i < taken.size(); ++i)
      value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return value;
  }

  uint64_t readVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      auto byte = static_cast<unsigned char>(readFixed(1));
      value |= uint64_t{byte & 127u} << shift;
      if (damaged || byte < 128)
        return value;
    }
    damaged = true;
    return 0;
  }

  std::string_view rest;
  bool damaged = false;
};

enum PieceType : uint64_t { kNormal = 1 }; // others are control symbols, which no text has
enum ModelType : uint64_t { kUnigramModel = 1 };

struct SentencePieces {
  std::map<std::string, double, std::less<>> scores; // of the pieces of texts
  std::string charsMap;                              // the normalizer's, as its table is stored
};

absl::Status readPiece(std::string_view bytes, SentencePieces &pieces) {
  Fields fields(bytes);
  std::string text;
  double score = 0;
  uint64_t type = kNormal;
  while (auto field = fields.next()) {
    if (field->number == 1)
      text = field->bytes;
    else if (field->number == 2)
      score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    else if (field->number == 3)
      type = field->value;
  }
  if (fields.isDamaged() || findInvalidUtf8(text) != std::string::npos || !(score > -1e5 && score < 1e5))
    return invalid("expected a SentencePiece model, but a piece is damaged");
  if (type == kNormal && !text.empty())
    pieces.scores.emplace(std::move(text), score);
  return absl::OkStatus();
}

absl::StatusOr<SentencePieces> readPieces(std::string_view bytes) {
  SentencePieces pieces;
  Fields model(bytes);
  uint64_t type = kUnigramModel;
  while (auto field = model.next()) {
    Fields inner(field->bytes);
    if (field->number == 1)
      HONE_RETURN_IF_ERROR(readPiece(field->bytes, pieces));
    else if (field->number == 2) { // TrainerSpec
      while (auto option = inner.next())
        type = option->number == 3 ? option->value : type;
    } else if (field->number == 3) { // NormalizerSpec
      while (auto option = inner.next())
        if (option->number == 2)
          pieces.charsMap = option->bytes;
    }
    if (inner.isDamaged())
      break;
  }
  if (model.isDamaged() || pieces.scores.empty())
    return invalid("expected a SentencePiece model, but it is damaged");
  if (type != kUnigramModel)
    return invalid("unsupported SentencePiece model of type ", type, "; supported: unigrams");
  return pieces;
}

/// Pieces by their ids.
absl::StatusOr<std::vector<std::string>> readVocabulary(std::string_view text) {
  HONE_ASSIGN_OR_RETURN(io::JsonDocument document, io::parseJson(text, "vocab.json"));
  if (!document->is_object())
    return invalid("vocab.json: expected an object");
  std::vector<std::string> pieces(document->size());
  std::vector<bool> isTaken(document->size());
  for (const auto &[piece, value] : document->items()) {
    std::optional<int64_t> id = io::asInteger(&value);
    if (!id || *id < 0 || *id >= std::ssize(pieces) || isTaken[static_cast<size_t>(*id)])
      return invalid("vocab.json: expected each of ", pieces.size(), " pieces to have an id of its own from 0 on");
    pieces[static_cast<size_t>(*id)] = piece;
    isTaken[static_cast<size_t>(*id)] = true;
  }
  return pieces;
}

bool isLanguage(std::string_view piece) { return piece.size() > 4 && piece.starts_with(">>") && piece.ends_with("<<"); }

/// Pieces of the source's language have their score. One of the target's comes last: a character on its own where no piece has it, as
/// SentencePiece gives a character that it does not know as it is.
double scoreOf(const std::string &piece, const SentencePieces &pieces) {
  constexpr double kOtherCharacter = -1e6, kNever = -1e8;
  if (auto found = pieces.scores.find(piece); found != pieces.scores.end())
    return found->second;
  bool isCharacter = !piece.empty() && static_cast<size_t>(sequenceLength(piece.front())) == piece.size();
  return isCharacter ? kOtherCharacter : kNever;
}

io::Json addedToken(const std::string &content, size_t id, bool isSpecial) {
  return {{"id", id},
          {"content", content},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", !isSpecial},
          {"normalized", false},
          {"special", isSpecial}};
}

io::Json normalizerOf(const SentencePieces &pieces) {
  io::Json steps = io::Json::array();
  if (!pieces.charsMap.empty())
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", absl::Base64Escape(pieces.charsMap)}});
  steps.push_back({{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}});
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

} // namespace

absl::StatusOr<std::string> makeMarianTokenizer(std::string_view bytes, std::string_view vocabulary,
                                                const std::string &name) {
  auto make = [&]() -> absl::StatusOr<std::string> {
    HONE_ASSIGN_OR_RETURN(SentencePieces pieces, readPieces(bytes));
    HONE_ASSIGN_OR_RETURN(std::vector<std::string> ids, readVocabulary(vocabulary));
    std::optional<size_t> end, unknown;
    io::Json entries = io::Json::array(), added = io::Json::array();
    for (size_t id = 0; id < ids.size(); ++id) {
      const std::string &piece = ids[id];
      entries.push_back(io::Json::array({piece, scoreOf(piece, pieces)}));
      if (piece == "</s>")
        end = id;
      if (piece == "<unk>")
        unknown = id;
      bool isSpecial = piece == "</s>" || piece == "<unk>" || piece == "<pad>";
      if (isSpecial || isLanguage(piece))
        added.push_back(addedToken(piece, id, isSpecial));
    }
    if (!end || !unknown)
      return invalid("vocab.json: expected the pieces </s> and <unk>");
    io::Json metaspace = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}, {"split", true}};
    io::Json single = {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                       {{"SpecialToken", {{"id", "</s>"}, {"type_id", 0}}}}};
    io::Json document = {
        {"version", "1.0"},
        {"added_tokens", added},
        {"normalizer", normalizerOf(pieces)},
        {"pre_tokenizer", metaspace},
        {"post_processor",
         {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", single},
          {"special_tokens",
           {{"</s>", {{"id", "</s>"}, {"ids", io::Json::array({*end})}, {"tokens", io::Json::array({"</s>"})}}}}}}},
        {"decoder", metaspace},
        {"model", {{"type", "Unigram"}, {"unk_id", *unknown}, {"vocab", entries}, {"byte_fallback", false}}}};
    return document.dump(1, ' ', false, io::Json::error_handler_t::replace) + "\n";
  };
  absl::StatusOr<std::string> made = make();
  return made.ok() ? made : invalid(name, ": ", made.status().message());
}

} // namespace hone::text
