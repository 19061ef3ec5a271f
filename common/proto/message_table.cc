#include "common/proto/message_table.h"

#include <fmt/core.h>

namespace gantry::proto {
namespace {

// The rules that every line of messages.def has to keep; handlers may rely on them.
constexpr bool sound(const MessageRow& row) {
  const bool asked = row.kind == MessageKind::read || row.kind == MessageKind::write;
  switch (row.kind) {
    case MessageKind::session: return row.right == Right::everybody && !row.lasts;
    case MessageKind::report: return row.from.only(Sender::node);
    case MessageKind::order: return row.from.only(Sender::controller) && row.taker == Taker::noded;
    case MessageKind::reply: return row.taker == Taker::asker;
    default: break;
  }
  // A stranger may only read, and only what is the same for everybody.
  if (row.from.has(Sender::stranger) &&
      (row.kind != MessageKind::read || row.right != Right::everybody))
    return false;
  // A job has no administrator's rights, whoever its owner is. It also cannot make anything
  // permanent that gives rights, or that runs programs outside of its container.
  if ((row.right != Right::everybody || row.lasts) && !row.from.only(Sender::client)) return false;
  return asked && !row.from.has(Sender::node) && !row.from.has(Sender::controller);
}

constexpr bool table_is_sound() {
  for (std::size_t i = 0; i < kMessages.size(); ++i) {
    if (!sound(kMessages[i])) return false;
    for (std::size_t j = 0; j < i; ++j)
      if (kMessages[i].type == kMessages[j].type) return false;
  }
  return true;
}
static_assert(table_is_sound(), "a line of messages.def breaks a rule of sound()");

std::string_view name_of(Sender sender) {
  switch (sender) {
    case Sender::stranger: return "a stranger";
    case Sender::client: return "a client";
    case Sender::job: return "a program inside a job";
    case Sender::node: return "a node";
    case Sender::controller: return "the controller";
  }
  return "?";
}

std::string_view name_of(const Senders& from) {
  if (from.has(Sender::stranger)) return "anybody";
  if (from.only(Sender::client)) return "a client outside of jobs";
  for (const Sender one : {Sender::client, Sender::job, Sender::node, Sender::controller})
    if (from.has(one)) return name_of(one);
  return "nobody";
}

std::string_view name_of(Place place) {
  switch (place) {
    case Place::controller: return "the controller";
    case Place::node: return "a node";
    case Place::asker: return "whoever asked";
  }
  return "?";
}

}  // namespace

Result<void> check_sender(std::uint16_t number, Sender sender, Place here) {
  const auto row = find_message(number);
  if (sender == Sender::stranger && !(row && row->from.has(sender)))
    return fail(ErrorCode::unauthenticated, "authenticate first");
  if (!row) return fail(ErrorCode::unsupported, message_name(number) + " is unknown here");
  if (row->from.has(sender) && place_of(row->taker) == here) return {};
  return fail(
      ErrorCode::permission_denied,
      fmt::format("{} goes from {} to {}: {} may not send it to {}", row->name, name_of(row->from),
                  name_of(place_of(row->taker)), name_of(sender), name_of(here)));
}

std::string message_name(std::uint16_t number) {
  const auto row = find_message(number);
  return row ? std::string(row->name) : fmt::format("message {}", number);
}

}  // namespace gantry::proto
