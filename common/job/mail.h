// Mail about a job, as --mail-type and --mail-user ask for it.
//
// A wish travels and is stored in JobSpec::given as "mail-type=BEGIN,END" and "mail-user=a@b,c":
// few jobs have one, and nothing but the controller's mail and the listings reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry {

inline constexpr std::string_view kMailTypeGiven = "mail-type=";
inline constexpr std::string_view kMailUserGiven = "mail-user=";
inline constexpr std::size_t kMostMailAddresses = 16;

// When mail is sent: a set of these.
enum class MailEvent : std::uint8_t {
  begin = 1,            // started
  end = 2,              // ended, whatever came of it, but for what `fail` says
  fail = 4,             // ended neither well nor by a cancel
  requeue = 8,          // back in the queue
  invalid_depend = 16,  // a dependency can never be met
  time_limit = 32,      // ended at its time limit
  array_tasks = 64,     // of each task of an array, instead of the array
};
using MailEvents = std::uint32_t;
constexpr bool has(MailEvents events, MailEvent one) {
  return (events & static_cast<MailEvents>(one)) != 0;
}

// "BEGIN,END", "ALL", "NONE" (0), in any case. invalid_argument: not one of Slurm's; unsupported:
// one of those that cannot be kept (a part of the time limit, staging).
Result<MailEvents> parse_mail_events(std::string_view text);
std::string format_mail_events(MailEvents events);  // "BEGIN,END"; "NONE"

// "alice", "alice@example.org,bob". Addresses become words of a command and of a header, so they
// have none but harmless characters and do not begin with '-'.
Result<std::vector<std::string>> parse_mail_addresses(std::string_view text);

struct MailWish {
  MailEvents events = 0;
  std::vector<std::string> to;  // none = who submitted the job
};
// What `given` of a JobSpec asks for; an unset wish is none at all. Errors as of the parsers.
Result<std::optional<MailWish>> mail_wish(std::span<const std::string> given);

}  // namespace gantry
