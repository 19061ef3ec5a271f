// Expands and compresses host lists; hostlist.h has the rules.
#include "common/text/hostlist.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "common/limits.h"

namespace gantry {
namespace {

// More digits than this are treated as part of the name, not as a number.
constexpr std::size_t kMaxDigits = 9;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_' ||
         c == '.';
}

std::uint32_t to_number(std::string_view digits) {
  std::uint32_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// Reads a list from left to right; at_ is the next byte.
class Expander {
 public:
  explicit Expander(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> run() {
    std::vector<std::string> all;
    while (at_ < text_.size()) {
      Result<std::vector<std::string>> names = one_pattern();
      if (!names) return names;
      if (all.size() + names->size() > kMaxHosts) return too_many();
      std::move(names->begin(), names->end(), std::back_inserter(all));
      if (at_ == text_.size()) break;
      if (text_[at_] != ',') return unexpected();
      if (++at_ == text_.size()) return wrong("a name is missing after the comma");
    }
    return all;
  }

 private:
  // Reads one pattern, up to the next comma outside of brackets: "rack[1-2]node[01-04]". The names
  // come in Slurm's order: the last bracket changes fastest, then the first one, the second one,
  // ...
  Result<std::vector<std::string>> one_pattern() {
    std::vector<std::string> heads{""}, names{""};  // `names`: from the last bracket on
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != ',') {
      if (text_[at_] == '[') {
        Result<std::vector<std::string>> parts = bracket();
        if (!parts) return parts;
        if (heads.size() * names.size() * parts->size() > kMaxHosts) return too_many();
        std::vector<std::string> all;
        for (const std::string& name : names)
          for (const std::string& head : heads) all.push_back(head + name);
        heads = std::move(all);
        names = std::move(*parts);
      } else if (is_name_char(text_[at_])) {
        for (std::string& name : names) name += text_[at_];
        ++at_;
      } else {
        return unexpected();
      }
      if (heads.front().size() + names.front().size() > kMaxHostName)
        return wrong("a name is longer than 253 bytes");
    }
    if (at_ == start) return wrong("a name is missing");
    return product(heads, names);
  }

  // Reads a bracket like "[01-04,07]" and returns the texts that it stands for.
  Result<std::vector<std::string>> bracket() {
    const std::size_t open = at_++;
    std::vector<std::string> parts;
    while (true) {
      Result<void> added = range(parts);
      if (!added) return tl::unexpected(added.error());
      if (at_ == text_.size()) {
        at_ = open;
        return wrong("the bracket is not closed");
      }
      const char c = text_[at_];
      if (c != ',' && c != ']') return unexpected();
      ++at_;
      if (c == ']') return parts;
    }
  }

  Result<void> range(std::vector<std::string>& parts) {
    Result<std::string_view> first = digits();
    if (!first) return tl::unexpected(first.error());
    Result<std::string_view> last = first;
    if (at_ < text_.size() && text_[at_] == '-') {
      ++at_;
      last = digits();
      if (!last) return tl::unexpected(last.error());
    }
    const std::uint32_t low = to_number(*first);
    const std::uint32_t high = to_number(*last);
    if (high < low) return wrong("the range ends below its start");
    if (parts.size() + (high - low) >= kMaxHosts) return too_many();
    for (std::uint32_t n = low; n <= high; ++n)
      parts.push_back(fmt::format("{:0{}}", n, first->size()));
    return {};
  }

  Result<std::string_view> digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    if (at_ == start) return at_ < text_.size() ? unexpected() : wrong("a number is missing");
    if (at_ - start > kMaxDigits) return wrong("a number has more than 9 digits");
    return text_.substr(start, at_ - start);
  }

  static std::vector<std::string> product(const std::vector<std::string>& heads,
                                          const std::vector<std::string>& tails) {
    std::vector<std::string> all;
    all.reserve(heads.size() * tails.size());
    for (const std::string& head : heads)
      for (const std::string& tail : tails) all.push_back(head + tail);
    return all;
  }

  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::invalid_argument,
                fmt::format("host list \"{}\": {} at position {}", text_, what, at_ + 1));
  }
  [[nodiscard]] tl::unexpected<Error> unexpected() const {
    return wrong(fmt::format("unexpected '{}'", text_[at_]));
  }
  [[nodiscard]] tl::unexpected<Error> too_many() const {
    return fail(
        ErrorCode::limit_exceeded,
        fmt::format("host list names more than {} hosts at position {}", kMaxHosts, at_ + 1));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// A name in two parts: "gpu" and "07". Without digits the whole name is the prefix.
struct Parts {
  std::string_view prefix;
  std::string_view digits;
};

Parts take_apart(std::string_view name) {
  std::size_t split = name.size();
  while (split > 0 && is_digit(name[split - 1])) --split;
  if (name.size() - split > kMaxDigits) split = name.size();
  return {name.substr(0, split), name.substr(split)};
}

// Collects the ranges of one prefix while names come in order.
class Group {
 public:
  // Returns false if the name does not belong to this group.
  bool add(const Parts& parts) {
    if (ranges_.empty())
      prefix_ = parts.prefix;
    else if (parts.digits.empty() || parts.prefix != prefix_ || ranges_.back().first.empty())
      return false;
    if (!ranges_.empty() && continues(ranges_.back(), parts.digits))
      ranges_.back().last = parts.digits;
    else
      ranges_.push_back({parts.digits, parts.digits});
    return true;
  }

  [[nodiscard]] bool empty() const { return ranges_.empty(); }

  [[nodiscard]] std::string text() const {
    if (ranges_.size() == 1 && ranges_[0].first == ranges_[0].last)
      return fmt::format("{}{}", prefix_, ranges_[0].first);
    std::string out = fmt::format("{}[", prefix_);
    for (const Range& range : ranges_) {
      if (out.back() != '[') out += ',';
      out += range.first;
      if (range.first != range.last) out += fmt::format("-{}", range.last);
    }
    return out + ']';
  }

 private:
  struct Range {
    std::string_view first, last;
  };

  // True if the range, extended by one, would expand to exactly the text `digits` after its last.
  static bool continues(const Range& range, std::string_view digits) {
    if (to_number(digits) != to_number(range.last) + 1) return false;
    return fmt::format("{:0{}}", to_number(digits), range.first.size()) == digits;
  }

  std::string_view prefix_;
  std::vector<Range> ranges_;
};

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  return Expander(text).run();
}

std::string compress_hostlist(std::span<const std::string> names) {
  std::string out;
  Group group;
  const auto flush = [&] {
    if (group.empty()) return;
    if (!out.empty()) out += ',';
    out += group.text();
    group = Group{};
  };
  for (const std::string& name : names) {
    const Parts parts = take_apart(name);
    if (group.add(parts)) continue;
    flush();
    group.add(parts);
  }
  flush();
  return out;
}

std::string compress_counts(std::span<const std::uint32_t> counts) {
  std::string out;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    if (!out.empty()) out += ',';
    out += std::to_string(counts[i]);
    if (end - i > 1) out += fmt::format("(x{})", end - i);
    i = end;
  }
  return out;
}

}  // namespace gantry
