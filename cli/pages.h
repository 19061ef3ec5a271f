// Listings that the controller sends in pages: how a command asks for the pages and joins them into
// the reply that a controller without pages would send. Session does this for every call, so a
// command always sees the whole listing, from an old controller too.
//
// A page begins after a number, id or name, not at a position. Rows that appear or disappear
// between two pages therefore do not shift the others. The rows are put in their final order here.
#pragma once

#include "common/proto/messages.h"

namespace gantry::cli {

// How pages of a reply are requested and joined:
//   first(request)               makes the request ask for the first page
//   add(whole, page, request)    joins a page to `whole`, and makes the request ask for the next;
//                                returns false if that was the last page, or if the controller
//                                does not support pages
//   finish(whole)                gives `whole` the order and form of a reply without pages
template <class Request>
struct Pages {
  static constexpr bool kAny = false;
};

template <>
struct Pages<proto::ListNodes> {
  static constexpr bool kAny = true;
  static void first(proto::ListNodes& m) { m.from = 0; }
  static bool add(proto::ListNodesReply& whole, proto::ListNodesReply&& page, proto::ListNodes& m);
  static void finish(proto::ListNodesReply& whole);
};

template <>
struct Pages<proto::ListPartitions> {
  static constexpr bool kAny = true;
  static void first(proto::ListPartitions& m) { m.from = 0; }
  static bool add(proto::ListPartitionsReply& whole, proto::ListPartitionsReply&& page,
                  proto::ListPartitions& m);
  static void finish(proto::ListPartitionsReply& whole);
};

template <>
struct Pages<proto::ShowConfig> {
  static constexpr bool kAny = true;
  static void first(proto::ShowConfig& m) { m.after.emplace(); }
  static bool add(proto::ShowConfigReply& whole, proto::ShowConfigReply&& page,
                  proto::ShowConfig& m);
  static void finish(proto::ShowConfigReply& whole);
};

template <>
struct Pages<proto::ShareTree> {
  static constexpr bool kAny = true;
  static void first(proto::ShareTree& m) { m.from = 0; }
  static bool add(proto::ShareTreeReply& whole, proto::ShareTreeReply&& page, proto::ShareTree& m);
  static void finish(proto::ShareTreeReply& whole);
};

template <>
struct Pages<proto::PriorityTuples> {
  static constexpr bool kAny = true;
  static void first(proto::PriorityTuples& m) { m.after_job.emplace(); }
  static bool add(proto::PriorityTuplesReply& whole, proto::PriorityTuplesReply&& page,
                  proto::PriorityTuples& m);
  static void finish(proto::PriorityTuplesReply& whole);
};

template <>
struct Pages<proto::TenancyHistory> {
  static constexpr bool kAny = true;
  static void first(proto::TenancyHistory& m) { m.from.emplace(); }
  static bool add(proto::TenancyHistoryReply& whole, proto::TenancyHistoryReply&& page,
                  proto::TenancyHistory& m);
  static void finish(proto::TenancyHistoryReply& whole);
};

template <>
struct Pages<proto::ListAccess> {
  static constexpr bool kAny = true;
  static void first(proto::ListAccess& m) { m.after = 0; }
  static bool add(proto::AccessReply& whole, proto::AccessReply&& page, proto::ListAccess& m);
  static void finish(proto::AccessReply& whole) { whole.next.reset(); }
};

}  // namespace gantry::cli
