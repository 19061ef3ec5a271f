// Instantiates the walk through the texts of every message that comes to the controller.
#include "common/proto/any/message_texts.h"

#include <type_traits>

#include "common/codec/texts.h"
#include "common/proto/any/message_visit.h"

namespace gantry::proto {
namespace {

constexpr bool asked(const MessageRow& row) {
  return place_of(row.taker) == Place::controller;
}
constexpr bool reported(const MessageRow& row) {
  return asked(row) && row.from.has(Sender::node);
}

}  // namespace

void each_text(const AnyMessage& message,
               const std::function<void(std::string_view, const std::string&)>& f) {
  visit_where<asked>([&](const auto& m) { codec::each_text(m, f); }, message);
}

void each_text_of_report(AnyMessage& message,
                         const std::function<void(std::string_view, std::string&)>& f) {
  visit_where<reported>(
      [&](auto& m) {
        codec::each_text(m, [&](std::string_view field, auto& text) {
          if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>) f(field, text);
        });
      },
      message);
}

}  // namespace gantry::proto
