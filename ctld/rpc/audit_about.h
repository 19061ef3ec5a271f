// What a request names, in a few words for the audit log: "job=12 node=n1". Only fields with names
// and numbers are used; scripts, environments, secrets and comments never get into the log.
#pragma once

#include <string>

#include "common/proto/any/any_message.h"

namespace gantry::rpc {

inline constexpr std::size_t kMostAbout = 400;  // bytes

std::string about(const proto::AnyMessage& message);  // a request to the core or the shell

}  // namespace gantry::rpc
