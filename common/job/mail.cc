#include "common/job/mail.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text/split.h"

namespace gantry {
namespace {

struct EventWord {
  std::string_view text;
  bool MailEvents::*event;
};
constexpr std::array<EventWord, 7> kEventWords{{{"BEGIN", &MailEvents::begin},
                                                {"END", &MailEvents::end},
                                                {"FAIL", &MailEvents::fail},
                                                {"REQUEUE", &MailEvents::requeue},
                                                {"INVALID_DEPEND", &MailEvents::invalid_depend},
                                                {"TIME_LIMIT", &MailEvents::time_limit},
                                                {"ARRAY_TASKS", &MailEvents::array_tasks}}};
// The events of "ALL": as Slurm has it, but for staging, of which there is none.
constexpr std::array<bool MailEvents::*, 5> kAllEvents{&MailEvents::begin, &MailEvents::end,
                                                       &MailEvents::fail, &MailEvents::requeue,
                                                       &MailEvents::invalid_depend};
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
  MailEvents events;
  for (const std::string& one : split_list(text)) {
    const std::string word = upper_case(one);
    const auto known = std::find_if(kEventWords.begin(), kEventWords.end(),
                                    [&](const EventWord& entry) { return entry.text == word; });
    if (known != kEventWords.end())
      events.*known->event = true;
    else if (word == "ALL")
      for (const auto event : kAllEvents) events.*event = true;
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
      events = {};
  }
  return events;
}

std::string format_mail_events(const MailEvents& events) {
  std::string out;
  for (const auto& [text, event] : kEventWords)
    if (events.*event) out.append(out.empty() ? "" : ",").append(text);
  return out.empty() ? "NONE" : out;
}

Result<void> check_mail_addresses(const std::vector<std::string>& addresses) {
  for (const std::string& one : addresses)
    if (!is_address(one))
      return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no address of mail", one));
  if (addresses.empty() || addresses.size() > kMostMailAddresses)
    return fail(ErrorCode::invalid_argument, fmt::format("{} addresses; 1 to {} are allowed",
                                                         addresses.size(), kMostMailAddresses));
  return {};
}

Result<std::vector<std::string>> parse_mail_addresses(std::string_view text) {
  std::vector<std::string> out = split_list(text);
  TRY(check_mail_addresses(out));
  return out;
}

}  // namespace gantry
