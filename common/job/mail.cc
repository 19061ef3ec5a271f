#include "common/job/mail.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text/split.h"

namespace gantry {
namespace {

constexpr MailEvents bit(MailEvent event) {
  return static_cast<MailEvents>(event);
}

constexpr std::array<std::pair<std::string_view, MailEvents>, 8> kWords{{
    {"BEGIN", bit(MailEvent::begin)},
    {"END", bit(MailEvent::end)},
    {"FAIL", bit(MailEvent::fail)},
    {"REQUEUE", bit(MailEvent::requeue)},
    {"INVALID_DEPEND", bit(MailEvent::invalid_depend)},
    {"TIME_LIMIT", bit(MailEvent::time_limit)},
    {"ARRAY_TASKS", bit(MailEvent::array_tasks)},
    // As in Slurm, but without events of staging, which Gantry does not have.
    {"ALL", bit(MailEvent::begin) | bit(MailEvent::end) | bit(MailEvent::fail) |
                bit(MailEvent::requeue) | bit(MailEvent::invalid_depend)},
}};
constexpr std::string_view kNotKept[] = {"STAGE_OUT", "TIME_LIMIT_90", "TIME_LIMIT_80",
                                         "TIME_LIMIT_50"};
constexpr std::size_t kMostAddress = 254;  // RFC 5321

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

bool is_address(std::string_view text) {
  const auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("@._+-=#%/").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMostAddress && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), harmless) &&
         std::count(text.begin(), text.end(), '@') <= 1;
}

}  // namespace

Result<MailEvents> parse_mail_events(std::string_view text) {
  MailEvents events = 0;
  for (const std::string& one : split_list(text)) {
    const std::string word = upper_case(one);
    const auto known = std::find_if(kWords.begin(), kWords.end(),
                                    [&](const auto& entry) { return entry.first == word; });
    if (known != kWords.end())
      events |= known->second;
    else if (std::find(std::begin(kNotKept), std::end(kNotKept), word) != std::end(kNotKept))
      return fail(ErrorCode::unsupported,
                  fmt::format("\"{}\": mail is sent at BEGIN, END, FAIL, REQUEUE, INVALID_DEPEND "
                              "and TIME_LIMIT",
                              one));
    else if (word != "NONE")
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is none of NONE, BEGIN, END, FAIL, REQUEUE, INVALID_DEPEND, "
                              "TIME_LIMIT, ARRAY_TASKS and ALL",
                              one));
    else
      events = 0;
  }
  return events;
}

std::string format_mail_events(MailEvents events) {
  std::string out;
  for (const auto& [word, bits] : kWords)
    if (word != "ALL" && (events & bits) != 0) out += (out.empty() ? "" : ",") + std::string(word);
  return out.empty() ? "NONE" : out;
}

Result<std::vector<std::string>> parse_mail_addresses(std::string_view text) {
  std::vector<std::string> out = split_list(text);
  for (const std::string& one : out)
    if (!is_address(one))
      return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no address of mail", one));
  if (out.empty() || out.size() > kMostMailAddresses)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} addresses; 1 to {} are allowed", out.size(), kMostMailAddresses));
  return out;
}

Result<std::optional<MailWish>> mail_wish(std::span<const std::string> given) {
  std::optional<MailWish> wish;
  for (const std::string& one : given) {
    if (one.starts_with(kMailTypeGiven)) {
      const auto events = parse_mail_events(std::string_view(one).substr(kMailTypeGiven.size()));
      if (!events) return tl::unexpected(events.error());
      if (!wish) wish.emplace();
      wish->events = *events;
    } else if (one.starts_with(kMailUserGiven)) {
      auto to = parse_mail_addresses(std::string_view(one).substr(kMailUserGiven.size()));
      if (!to) return tl::unexpected(to.error());
      if (!wish) wish.emplace();
      wish->to = std::move(*to);
    }
  }
  return wish;
}

}  // namespace gantry
