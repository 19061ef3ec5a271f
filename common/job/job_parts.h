// Parts of a job's request that are used by it alone: arrays, signals, containers (job_spec.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/special_members.h"
#include "common/time/time.h"

namespace gantry {

// Choices of a job with a few named values: opening of output files, the network, and how its GPUs
// are named to it.

enum class OpenMode : std::uint8_t { truncate = 0, append = 1 };
GANTRY_NAMES(OpenMode, {truncate, "truncate"}, {append, "append"})

// loopback: the job reaches nothing but itself on each node. job: it has an address on each node,
// and its parts reach each other.
enum class NetworkMode : std::uint8_t { loopback = 0, host = 1, job = 2 };
GANTRY_NAMES(NetworkMode, {loopback, "none"}, {host, "host"}, {job, "job"})

// What CUDA_VISIBLE_DEVICES has for whole GPUs: their UUIDs, or their numbers in the job's CUDA
// runtime, which sees no other GPUs. Slices and parts of GPUs always have UUIDs.
enum class GpuNames : std::uint8_t { uuid = 0, index = 1 };
GANTRY_NAMES(GpuNames, {uuid, "uuid"}, {index, "index"})

// Inclusive range of array indexes, first <= last, step >= 1.
struct IndexRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::uint32_t step = 1;
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
  GANTRY_FIELDS(FIELD(1, first), FIELD(2, last), FIELD(3, step))
};

struct ArraySpec {
  std::vector<IndexRange> ranges;            // sorted, disjoint; at most kMaxArrayTasks in total
  std::optional<std::uint32_t> max_running;  // %N
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
  GANTRY_FIELDS(FIELD(1, ranges), FIELD(2, max_running))
};

struct WarnSignal {  // --signal=[B:]SIG[@SECONDS]
  std::int32_t signal = 0;
  Duration before{};  // before the time limit; default 60 s
  bool batch_shell_only = false;
  friend bool operator==(const WarnSignal&, const WarnSignal&) = default;
  GANTRY_FIELDS(FIELD(1, signal), FIELD(2, before), FIELD(3, batch_shell_only))
};

struct ContainerSpec {
  GANTRY_SPECIAL_MEMBERS(ContainerSpec)
  std::string image;                // "" = host view; DIR, oci:DIR[:REF], oci-archive:FILE,
                                    // FILE.sqsh, docker://HOST/IMAGE:TAG
  std::vector<std::string> mounts;  // SRC:DST[:ro|rw]
  std::string work_dir;             // "" = the job's work_dir, or the image's
  bool writable = false;            // overlay on a read-only root
  friend bool operator==(const ContainerSpec&, const ContainerSpec&) = default;
  GANTRY_FIELDS(FIELD(1, image), FIELD(2, mounts), FIELD(3, work_dir), FIELD(4, writable))
};

}  // namespace gantry
