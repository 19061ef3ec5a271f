// Mail about a job, as --mail-type and --mail-user ask for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/fields.h"
#include "common/result.h"

namespace gantry {

inline constexpr std::size_t kMostMailAddresses = 16;

// The events for which mail is sent.
struct MailEvents {
  bool begin = false;           // started
  bool end = false;             // ended in any way, except what `fail` covers
  bool fail = false;            // ended, but neither successfully nor by a cancel
  bool requeue = false;         // back in the queue
  bool invalid_depend = false;  // a dependency can never be met
  bool time_limit = false;      // ended at its time limit
  bool array_tasks = false;     // for each task of an array, instead of the array
  friend bool operator==(const MailEvents&, const MailEvents&) = default;
  [[nodiscard]] bool any() const { return *this != MailEvents{}; }
  GANTRY_FIELDS(FIELD(1, begin), FIELD(2, end), FIELD(3, fail), FIELD(4, requeue),
                FIELD(5, invalid_depend), FIELD(6, time_limit), FIELD(7, array_tasks))
};

// "BEGIN,END", "ALL", "NONE" (none at all), in any case. Errors: invalid_argument: not one of
// Slurm's; unsupported: a part of the time limit, or staging.
Result<MailEvents> parse_mail_events(std::string_view text);
std::string format_mail_events(const MailEvents& events);  // "BEGIN,END"; "NONE"

// "alice", "alice@example.org,bob". Addresses become words of a command and of a header, so they
// have none but harmless characters and do not begin with '-'.
Result<std::vector<std::string>> parse_mail_addresses(std::string_view text);
// The same for a list of addresses: 1 to kMostMailAddresses of them.
Result<void> check_mail_addresses(const std::vector<std::string>& addresses);

struct MailRequest {
  std::optional<MailEvents> events;  // unset: --mail-type was not given; "NONE" is none at all
  std::vector<std::string> to;       // empty = the user who submitted the job
  bool if_possible =
      false;  // on clusters without mail, the job gets a warning instead of a refusal
  friend bool operator==(const MailRequest&, const MailRequest&) = default;
  GANTRY_FIELDS(FIELD(1, events), FIELD(2, to), FIELD(3, if_possible))
};

}  // namespace gantry
