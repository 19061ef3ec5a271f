// The table of messages: which connections may send each message, which users may, and who receives
// it. The lines are those of messages.def. What is decoded where (OneOf of any_message.h,
// MessagesWhere), the refusal of wrong senders (check_sender), the rights (authorise.cc) and the
// table in docs/visibility.md are all made from it. A message without a line has no number, so it
// does not compile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "common/result.h"

namespace gantry::proto {

// Every message is declared here; its struct is in the header of its subject.
#define X(type, ...) struct type;
#include "common/proto/messages.def"
#undef X

enum class MessageType : std::uint16_t {
#define X(type, number, ...) type = number,
#include "common/proto/messages.def"
#undef X
};

template <class T>
struct MessageNumber;
#define X(type, number, ...)                                \
  template <>                                               \
  struct MessageNumber<type> {                              \
    static constexpr MessageType value = MessageType::type; \
  };
#include "common/proto/messages.def"
#undef X

template <class T>
inline constexpr MessageType number_of = MessageNumber<T>::value;

// A struct that messages.def lists.
template <class T>
concept Listed = requires {
  MessageNumber<T>::value;
};

// What the receiver of a message knows about the connection that brought it.
enum class Sender : std::uint8_t {
  stranger,    // a peer that has not proved an identity yet
  client,      // a user's command outside of jobs, authenticated
  job,         // a program inside a job: its node relays it, and it acts as the job's owner
  node,        // a peer that has proved an enrolled node's key
  controller,  // the other end, for a client or a node that has connected
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

// session: who the user is; read: changes nothing that is stored; write: changes something; reply:
// answers one of these; report: from a node; order: from the controller.
enum class MessageKind : std::uint8_t { session, read, write, reply, report, order };

// Which users may send it. Everybody: the handler only uses what the sender may see or change
// (ctld/core/access). Operators include administrators.
enum class Right : std::uint8_t { everybody, operators, admins };

// Who receives it: the controller's core (a handler in ctld/core/handler.h), the shell around it
// (ctld/server_*.cc), or its sessions; a node's daemon; or whoever has asked.
enum class Taker : std::uint8_t { core, shell, sessions, noded, asker };
enum class Place : std::uint8_t { controller, node, asker };

struct MessageRow {
  MessageType type;
  std::string_view name;
  Senders from;
  MessageKind kind;
  Right right;
  // The message makes something that gives rights, or runs programs, until it is removed. Users who
  // authenticated with a token may not send such a message, because a token ends.
  bool lasts;
  Taker taker;
};

namespace message_words {  // of messages.def

inline constexpr Senders anyone{Sender::stranger, Sender::client, Sender::job};
inline constexpr Senders outsiders{Sender::stranger, Sender::client};  // everybody except jobs
inline constexpr Senders enrolling{Sender::stranger, Sender::client, Sender::node};
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

// True for what needs a credential: the word of a login node (UserRelay) is not enough for
// permanent changes, or for tokens, which may last longer.
constexpr bool needs_credential(const MessageRow& row) {
  return row.lasts || row.type == MessageType::MakeToken;
}

constexpr Place place_of(Taker taker) {
  if (taker == Taker::noded) return Place::node;
  return taker == Taker::asker ? Place::asker : Place::controller;
}

// Checks whether this connection may send such a message; it is the only place that does. The error
// unauthenticated means that a stranger has to prove its identity first, whatever it sends;
// unsupported means that messages.def does not have the number; permission_denied means that others
// send or receive the message.
Result<void> check_sender(std::uint16_t number, Sender sender, Place here);

// The name of a message: "SubmitJob"; "message 999" for a number that messages.def does not have.
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

// The variant of all messages with the wanted rows, in the order of messages.def.
template <bool (*wanted)(const MessageRow&)>
using MessagesWhere = typename Selection<wanted>::Variant;

}  // namespace gantry::proto
