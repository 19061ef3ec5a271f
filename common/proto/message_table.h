// The table of messages: which connections may send each, whose it is, and who takes it. The lines
// are those of messages.def. From this table come the variants that are decoded
// (MessagesWhere), the refusal of a wrong sender (check_sender), the rights (authorise.cc) and the
// table in docs/visibility.md. A message without a line has no number, so it does not compile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "common/proto/messages.h"
#include "common/result.h"

namespace gantry::proto {

// The receiver of a message knows this of the connection that it came by.
enum class Sender : std::uint8_t {
  stranger,    // has shown no identity yet
  client,      // has: a user's command outside of jobs
  job,         // a program inside a job: its node relays it, its owner is the identity
  node,        // has proved an enrolled node's key
  controller,  // what a client or a node has connected to
};

class Senders {
 public:
  template <class... All>
  constexpr explicit Senders(All... all) : bits_((0U | ... | bit(all))) {}
  [[nodiscard]] constexpr bool has(Sender s) const { return (bits_ & bit(s)) != 0; }
  [[nodiscard]] constexpr bool only(Sender s) const { return bits_ == bit(s); }

 private:
  static constexpr unsigned bit(Sender s) { return 1U << static_cast<unsigned>(s); }
  unsigned bits_;
};

// session: who one is; read changes nothing that is stored; write does; a reply answers them; a
// node reports; the controller orders.
enum class MessageKind : std::uint8_t { session, read, write, reply, report, order };

// Whose it is among those who may send it. Everybody: its handler looks at nothing but what the
// sender may see or change (ctld/core/access). Operators: administrators are.
enum class Right : std::uint8_t { everybody, operators, admins };

// Of the controller: its core (a handler in ctld/core/handlers.h), the shell around it
// (ctld/server_*.cc), its sessions. A node's daemon. Whoever has asked.
enum class Taker : std::uint8_t { core, shell, sessions, noded, asker };
enum class Place : std::uint8_t { controller, node, asker };

struct MessageRow {
  MessageType type;
  std::string_view name;
  Senders from;
  MessageKind kind;
  Right right;
  // What it makes gives rights, or runs programs, until somebody takes it back. Whoever has shown a
  // token, which has an end, may not ask for it.
  bool lasts;
  Taker taker;
};

namespace message_words {  // of messages.def

inline constexpr Senders anyone{Sender::stranger, Sender::client, Sender::job};
inline constexpr Senders outsiders{Sender::stranger, Sender::client};  // no job: it is known
inline constexpr Senders users{Sender::client, Sender::job};
inline constexpr Senders clients{Sender::client};
inline constexpr Senders jobs{Sender::job};
inline constexpr Senders node{Sender::node};
inline constexpr Senders controller{Sender::controller};

struct Whose {
  Right right;
  bool lasts = false;
};
inline constexpr Whose everybody{Right::everybody};
inline constexpr Whose operators{Right::operators};
inline constexpr Whose admins{Right::admins};
constexpr Whose lasting(Whose w) {
  return {w.right, true};
}

constexpr MessageRow row(MessageType type, std::string_view name, Senders from, MessageKind kind,
                         Whose whose, Taker taker) {
  return {type, name, from, kind, whose.right, whose.lasts, taker};
}

inline constexpr std::array kRows{
#define X(type, number, from, kind, right, taker) \
  row(MessageType::type, #type, from, MessageKind::kind, right, Taker::taker),
#include "common/proto/messages.def"
#undef X
};

}  // namespace message_words

inline constexpr const auto& kMessages = message_words::kRows;

constexpr std::optional<MessageRow> find_message(std::uint16_t number) {
  for (const MessageRow& row : kMessages)
    if (static_cast<std::uint16_t>(row.type) == number) return row;
  return std::nullopt;
}

template <class T>
inline constexpr MessageRow kRowOf = *find_message(static_cast<std::uint16_t>(number_of<T>));

constexpr Place place_of(Taker taker) {
  if (taker == Taker::noded) return Place::node;
  return taker == Taker::asker ? Place::asker : Place::controller;
}

// May this connection send such a message to us? The one place that says so.
// unauthenticated: a stranger has to show who it is first, whatever it sends; unsupported: a number
// that messages.def has not; permission_denied: it is another's to send, or another's to take.
Result<void> check_sender(std::uint16_t number, Sender sender, Place here);

// "SubmitJob", or "message 999" for numbers that are not in messages.def.
std::string message_name(std::uint16_t number);

template <MessageType type>
struct MessageOf;
#define X(name, number, ...)            \
  template <>                           \
  struct MessageOf<MessageType::name> { \
    using type = name;                  \
  };
#include "common/proto/messages.def"
#undef X

template <bool (*wanted)(const MessageRow&)>
struct Selection {
  static constexpr std::size_t kCount = [] {
    std::size_t n = 0;
    for (const MessageRow& row : kMessages) n += wanted(row) ? 1 : 0;
    return n;
  }();
  static constexpr std::array<MessageType, kCount> kTypes = [] {
    std::array<MessageType, kCount> out{};
    std::size_t n = 0;
    for (const MessageRow& row : kMessages)
      if (wanted(row)) out[n++] = row.type;
    return out;
  }();
  template <std::size_t... I>
  static auto alternatives(std::index_sequence<I...>)
      -> std::variant<typename MessageOf<kTypes[I]>::type...>;
  using Variant = decltype(alternatives(std::make_index_sequence<kCount>()));
};

// The variant of all messages whose row is wanted, in the order of messages.def.
template <bool (*wanted)(const MessageRow&)>
using MessagesWhere = typename Selection<wanted>::Variant;

}  // namespace gantry::proto
