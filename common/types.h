// Ids: explicit types that can be ordered and hashed but have no arithmetic. Names (of nodes,
// partitions, users) become ids at the edge of the core; inside, only ids are compared.
//
// Id<Tag> never converts silently, so a JobId cannot be passed where a NodeId is wanted.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry {

template <class Tag, class Rep = std::uint64_t>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

using JobId = Id<struct JobTag>;                   // from 1; 0 means "none", and only on the wire
using EventSeq = Id<struct EventSeqTag>;           // position in the journal, 1..
using Epoch = Id<struct EpochTag>;                 // a run of the controller, from 1; grows by one
using NodeId = Id<struct NodeTag, std::uint32_t>;  // index into State's node table
using PartitionId = Id<struct PartitionTag, std::uint32_t>;
using Attempt = Id<struct AttemptTag, std::uint32_t>;    // counts the starts of one job, from 1
using StepId = Id<struct StepTag, std::uint32_t>;        // 0.. within one attempt
using TriggerId = Id<struct TriggerTag, std::uint32_t>;  // 1..
using Uid = Id<struct UidTag, std::uint32_t>;
using Gid = Id<struct GidTag, std::uint32_t>;

using Bytes = std::string;  // owned octets; std::string so that short ones need no allocation

}  // namespace gantry

template <class Tag, class Rep>
struct std::hash<gantry::Id<Tag, Rep>> {
  std::size_t operator()(gantry::Id<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
