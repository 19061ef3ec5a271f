#include "ctld/core/access/check_texts.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "common/proto/any/any_message.h"
#include "common/proto/any/message_codec.h"
#include "common/proto/tenancy.h"
#include "common/text/printable.h"
#include "ctld/core/request.h"

namespace gantry::core {
namespace {

enum class Rule : std::uint8_t { words, path, data };

struct FieldRule {
  std::string_view field;
  Rule rule;
};
constexpr std::array<FieldRule, 16> kRules{{{"work_dir", Rule::path},
                                            {"std_in", Rule::path},
                                            {"std_out", Rule::path},
                                            {"std_err", Rule::path},
                                            {"checkpoint_file", Rule::path},
                                            {"submit_dir", Rule::path},
                                            {"script_path", Rule::path},
                                            {"image", Rule::path},
                                            {"mounts", Rule::path},
                                            {"program", Rule::path},
                                            {"script", Rule::data},
                                            {"script_args", Rule::data},
                                            {"environment", Rule::data},
                                            {"submit_line", Rule::data},
                                            {"content", Rule::data},
                                            {"sealed", Rule::data}}};

Rule rule_of(std::string_view field) {
  for (const FieldRule& r : kRules)
    if (r.field == field) return r.rule;
  return Rule::words;
}

std::string in_words(std::string_view field) {
  std::string out = fmt::format("the field \"{}\"", field);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

Result<void> check(std::string_view field, std::string_view text, Lines lines) {
  const Rule rule = rule_of(field);
  if (rule == Rule::data || is_printable(text, lines)) return {};
  if (rule == Rule::words) return check_printable(in_words(field), text, lines);
  const auto control = [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; };
  if (std::none_of(text.begin(), text.end(), control)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} must not contain control characters", in_words(field)));
}

// A text may hold a path of the greatest length and a few words. What a node reports is kept in the
// store and shown to users, so somebody who has a node's key must not fill either.
constexpr std::size_t kMostNodeText = 5 << 10;  // bytes

}  // namespace

Result<void> check_texts(const proto::AnyMessage& message) {
  const Lines lines = message.is<proto::ApplyTenancy>() ? Lines::many : Lines::one;
  Result<void> found;
  proto::each_text(message, [&](std::string_view field, const std::string& text) {
    if (found) found = check(field, text, lines);
  });
  return found;
}

void clean_texts(NodeMessage& message) {
  proto::each_text(message, [](std::string_view, std::string& text) {
    if (text.size() > kMostNodeText) text.resize(kMostNodeText);
    if (!is_printable(text, Lines::many)) text = printable(text, Lines::many);
  });
}

}  // namespace gantry::core
