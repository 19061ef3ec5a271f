// The older form of what JobSpec has in fields since: a list of words, as "ntasks", "wckey=NAME",
// "mail-type=END". Clients, nodes and stored records of older releases have it.
//
// A reader turns it into fields once, when it has decoded the struct (from_older_form, fields.h).
// The controller also writes it for the nodes that it starts jobs on, which may be of an older
// release.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/job/distribution.h"
#include "common/job/given_options.h"
#include "common/job/mail.h"
#include "common/result.h"

namespace gantry {

// The meaning of such a list. Words that no release has read since ("mem", "mem-per-cpu") are
// dropped.
struct OlderGiven {
  GivenOptions given;
  MailRequest mail;
  std::string wckey;
  std::optional<Distribution> distribution;
  std::string submit_dir, script_path;
  bool network = false;             // --network was given
  std::vector<std::string> unread;  // words whose values cannot be read; see check_older_given()
};
OlderGiven read_older_given(std::span<const std::string> words);

// The error of the first word of OlderGiven::unread.
Result<void> check_older_given(std::span<const std::string> unread);

// The words of the list that a node of an older release looks for.
std::vector<std::string> given_for_older_node(const GivenOptions& given,
                                              const std::optional<Distribution>& distribution,
                                              const std::string& submit_dir);

}  // namespace gantry
