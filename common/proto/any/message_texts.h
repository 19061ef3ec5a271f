// Visits every text of a message of any type (common/codec/texts.h), compiled once for all of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/proto/any/any_message.h"

namespace gantry::proto {

// Calls f(name of the field, text) for each text of a message to the controller.
void each_text(const AnyMessage& message,
               const std::function<void(std::string_view, const std::string&)>& f);

// The same for a report of a node, whose texts f may change. Keys of maps are left out.
void each_text_of_report(AnyMessage& message,
                         const std::function<void(std::string_view, std::string&)>& f);

}  // namespace gantry::proto
