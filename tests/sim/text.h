// Writes one line of the trace for each kind of message.
#pragma once

#include <string>

#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "noded/core/core.h"

namespace gantry::sim {

std::string text_of(const core::OrderMessage& order);
std::string text_of(const core::NodeMessage& report);
std::string text_of(const core::ClientMessage& request);
std::string text_of(const core::ReplyMessage& reply);
std::string text_of(const node::Order& order);
std::string text_of(const node::Report& report);

// Encodes and decodes messages between the controller and nodes, so that each end gets what the
// wire delivers.
node::Order order_of(const core::OrderMessage& order);
core::NodeMessage message_of(const node::Report& report);

}  // namespace gantry::sim
