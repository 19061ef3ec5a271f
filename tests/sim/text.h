// Writes one line of the trace for each kind of message.
#pragma once

#include <string>

#include "ctld/core/core.h"

namespace gantry::sim {

std::string text_of(const core::OrderMessage& order);
std::string text_of(const core::NodeMessage& report);
std::string text_of(const core::ClientMessage& request);
std::string text_of(const core::ReplyMessage& reply);

}  // namespace gantry::sim
