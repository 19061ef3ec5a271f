// Requests about the controller itself: its options in force, its counters, and the keys that it
// knows. Client to ctld.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/proto/session.h"

namespace gantry::proto {

struct ShowConfig {
  std::optional<std::string> after{};  // a page: options after this name; "" = the first page
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "after", s.after);
  }
};

struct ConfigPage {
  static constexpr bool kLeftOutUnset = true;
  bool more = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "more", s.more);
  }
};

struct ShowConfigReply {
  std::map<std::string, std::string> values;  // every option with its value in force
  std::optional<ConfigPage> page{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "values", s.values);
    v(2, "page", s.page);
  }
};

// Binds a node's CURVE public key to its name (admin, once per node). Re-enrolment replaces it.
struct EnrollNode {
  std::string node;
  std::string public_key;  // Z85, 40 characters
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "node", s.node);
    v(2, "public_key", s.public_key);
  }
};

// Registers an ed25519 public key that may then act for a user. Users register their own; an admin
// registers keys for anyone.
struct RegisterKey {
  std::string user;
  std::string public_key;  // hex, 64 characters
  bool remove = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "user", s.user);
    v(2, "public_key", s.public_key);
    v(3, "remove", s.remove);
  }
};
// Counters of the controller, for ginfo --stats, benches and metrics.
struct ShowStats {
  bool since_reset = false;  // false: counters run from the controller's start on
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "since_reset", s.since_reset);
  }
};
struct CallCount {
  std::string name;  // of a message, or of a user
  std::uint64_t count = 0;
  Duration time{};  // in the controller's loop, all together
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "name", s.name);
    v(2, "count", s.count);
    v(3, "time", s.time);
  }
};
struct ShowStatsReply {
  std::map<std::string, std::int64_t> values;  // names end in their unit: _total, _us, _bytes
  Instant since{};                             // the counters run from then on
  // Requests since the last reset that were not refused unread, by message and by user. Who does
  // not see everything has only their own in `callers`.
  std::vector<CallCount> calls{}, callers{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "values", s.values);
    v(2, "since", s.since);
    v(3, "calls", s.calls);
    v(4, "callers", s.callers);
  }
};
// Lets the counters that ShowStats gives since the reset begin anew. Those of the metrics go on.
struct ResetStats {
  template <class Self, class V>
  static void fields(Self&, V&&) {}
};

// Tells a node to read gantry.yaml again and to start anew with it; its jobs go on. A node that is
// not connected reads the file when it is started next.
struct RereadConfig {
  template <class Self, class V>
  static void fields(Self&, V&&) {}
};

}  // namespace gantry::proto
