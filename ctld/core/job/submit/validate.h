// Is a submit well formed and allowed? Every limit has a name and a unit, and every refusal says
// what is wrong and what is allowed. Values that the request left open (partition, name, time
// limit) are filled in.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/proto/job_submit.h"
#include "ctld/core/context.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct Partition;

inline constexpr std::size_t kMaxNameBytes = 256;  // of a job's name
inline constexpr std::size_t kMaxAccountBytes = 128;
inline constexpr std::size_t kMaxWckeyBytes = 256;
inline constexpr std::size_t kMaxCommentBytes = 1024;
inline constexpr std::size_t kMaxPathBytes = 4096;
inline constexpr std::size_t kMaxTresBytes = 256;  // each word of AskedTres
inline constexpr std::size_t kMaxSubmitLineBytes = 32 * 1024;
inline constexpr std::size_t kMaxScriptArgs = 4096;
inline constexpr std::size_t kMaxArgBytes = 128 * 1024;       // all script arguments together
inline constexpr std::size_t kMaxEnvironmentBytes = 1 << 20;  // names and values
inline constexpr std::size_t kMaxRequestIdBytes = 64;
inline constexpr std::size_t kMaxConstraintBytes = 1024;
inline constexpr std::size_t kMaxMounts = 128;
inline constexpr std::size_t kMaxDependencies = 1024;
inline constexpr std::uint32_t kMaxJobTasks = 4'194'304;
inline constexpr std::uint32_t kMaxCpusPerTask = 65'536;
inline constexpr std::int32_t kMaxNice = 10'000;

struct Resolved {
  PartitionId partition{};
  std::optional<Duration> time_limit;   // unset = unlimited
  std::vector<std::string> warnings{};  // to the submitter, one sentence each
};

// Checks everything except dependencies; fills values that were left open into `submit.spec`.
// `beside`: the earlier components of the same job, which count in what tenants allow.
Result<Resolved> validate(Context& ctx, const Identity& who, proto::SubmitJob& submit,
                          std::span<const Resolved> beside = {});

// What is only shown: each word is short, and can be printed.
Result<void> check_tres(const AskedTres& tres);

// The next functions apply the same rules for `gctl update`.
Result<std::optional<Duration>> check_time_limit(const Partition& partition,
                                                 std::optional<Duration> asked, bool unlimited);
// Checks the new shape of a queued job; sorts its lists of nodes and keeps it within the
// partition's limit.
Result<void> check_new_shape(Context& ctx, const Partition& partition, JobShape& shape);
Result<void> check_host_network(const State& state, const Partition& partition);
// Whether the job's tenant may keep other tenants' jobs off nodes when it pays only for a part of
// them.
Result<void> check_sharing(const State& state, const Partition& partition, const JobShape& shape);
Result<void> check_partition_fit(Context& ctx, const Partition& partition, const JobShape& shape);
Result<void> check_times(const Context& ctx, const JobSpec& spec, std::optional<Duration> limit);
// Checks the least time limit. A job with a deadline that names no limit gets the time that its
// deadline leaves: its limit is lowered as far as that needs.
Result<void> check_time_min(std::optional<Duration> limit, JobSpec& spec);
// Checks --net and --io.
Result<void> check_rates(const JobSpec& spec);
// Refuses a time more than kMaxDurationDays from now, because arithmetic on it could overflow.
Result<void> check_instant(const Context& ctx, std::string_view what, std::optional<Instant> t);
// The warning for a job that wants mail on a cluster that sends none; "" = no warning.
std::string mail_warning(const Context& ctx, const JobSpec& spec);
Result<void> check_text(std::string_view what, std::string_view text, std::size_t most);

}  // namespace gantry::core
