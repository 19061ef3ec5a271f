// The file `contact` of the state directory: when the controller was last known to hear this node,
// and after how much silence the controller may assume that every job here has ended. The file
// exists only under lost_node_policy fence. noded writes it at each answer to a heartbeat, and
// every shim reads it: a job must end after that silence even if its noded does not run.
//
// One line of three numbers, in microseconds: the contact on noded's clock, the same moment on
// CLOCK_BOOTTIME (which no one sets, and which goes on while the machine sleeps), fence_after.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/time/time.h"

namespace gantry::runtime {

inline constexpr const char* kContactFile = "contact";

struct Contact {
  Instant at{};
  Duration boot{};  // since the machine started
  Duration fence_after{};
};

std::string contact_text(const Contact& contact);
std::optional<Contact> parse_contact(std::string_view text);
Duration since_boot();

}  // namespace gantry::runtime
