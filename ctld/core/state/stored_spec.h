// A job's spec as it lies in the store: immutable, written once, with the submit. SpecHead and
// SpecTail read parts of it without the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"
#include "common/job/older_given.h"

namespace gantry::core {

struct StoredSpec {
  JobSpec spec;  // partition resolved; array ranges checked
  Owner owner;
  Bytes script_digest;  // 32 octets, or empty
  Bytes environment_digest;
  std::string request_id;
  std::uint32_t script_bytes = 0;  // as stored; 0 = none, or stored before this was counted
  std::uint32_t environment_bytes = 0;
  void from_older_form() {  // an older spec without a network means the usual one
    if (!spec.network) spec.network = NetworkMode::loopback;
  }
  GANTRY_FIELDS(FIELD(1, spec), FIELD(2, owner), FIELD(3, script_digest),
                FIELD(4, environment_digest), FIELD(5, request_id), FIELD(6, script_bytes),
                FIELD(7, environment_bytes))
};

// Decodes from the same bytes only what the part of a Job that is always in memory needs. Field
// numbers are JobSpec's.
struct SpecHead {
  struct Container {
    std::string image;
    GANTRY_FIELDS(FIELD(1, image))
  };
  struct Spec {
    JobKind kind = JobKind::batch;
    std::string name;
    std::string account;
    JobShape shape;
    std::optional<Instant> deadline;
    std::vector<Dependency> dependencies;
    bool any_dependency = false;
    bool cancel_on_invalid_dependency = true;
    std::optional<ArraySpec> array;
    std::int32_t nice = 0;
    std::optional<std::uint32_t> priority;
    bool requeue = true;
    std::optional<WarnSignal> warn_signal;
    Container container;
    std::string priority_class;
    std::string reservation;
    std::optional<HetPart> het;
    std::optional<Duration> time_min;
    bool no_kill = false;
    std::vector<SecretUse> secrets;
    std::vector<DatasetUse> datasets;
    std::optional<ReplicaOf> replica;
    GANTRY_FIELDS(FIELD(1, kind), FIELD(2, name), FIELD(4, account), FIELD(6, shape),
                  FIELD(10, deadline), FIELD(11, dependencies), FIELD(12, any_dependency),
                  FIELD(13, cancel_on_invalid_dependency), FIELD(14, array), FIELD(15, nice),
                  FIELD(16, priority), FIELD(18, requeue), FIELD(19, warn_signal),
                  FIELD(25, container), FIELD(31, priority_class), FIELD(33, reservation),
                  FIELD(35, het), FIELD(42, time_min), FIELD(45, no_kill), FIELD(73, secrets),
                  FIELD(85, datasets), FIELD(88, replica))
  };
  struct Who {
    Uid uid{};
    std::string user;
    GANTRY_FIELDS(FIELD(1, uid), FIELD(3, user))
  };
  Spec spec;
  Who owner;
  Bytes script_digest;
  Bytes environment_digest;
  std::string request_id;
  std::uint32_t script_bytes = 0;
  std::uint32_t environment_bytes = 0;
  GANTRY_FIELDS(FIELD(1, spec), FIELD(2, owner), FIELD(3, script_digest),
                FIELD(4, environment_digest), FIELD(5, request_id), FIELD(6, script_bytes),
                FIELD(7, environment_bytes))
};

// Decodes the few members that timers and metrics need of many jobs. Field numbers are those of
// StoredSpec and JobSpec.
struct SpecExtras {
  struct Spec {
    std::map<std::string, std::string> labels;
    std::vector<StageCopy> stage_in;
    GANTRY_FIELDS(FIELD(72, labels), FIELD(86, stage_in))
  };
  Spec spec;
  GANTRY_FIELDS(FIELD(1, spec))
};

// Reads what history and mail need beyond SpecHead. Field numbers are those of StoredSpec and
// JobSpec.
struct SpecTail {
  struct Spec {
    std::string comment, work_dir, std_out, std_err, submit_line, priority_class;
    std::vector<std::string> older_given;
    MailRequest mail;
    std::string wckey;
    std::map<std::string, std::string> labels;
    std::optional<WorkType> work_type;
    std::optional<Sandbox> sandbox{};
    void from_older_form() {  // same as JobSpec's
      if (older_given.empty()) return;
      OlderGiven older = read_older_given(older_given);
      if (!mail.events) mail.events = older.mail.events;
      if (mail.to.empty()) mail.to = std::move(older.mail.to);
      if (wckey.empty()) wckey = std::move(older.wckey);
    }
    GANTRY_FIELDS(FIELD(5, comment), FIELD(20, work_dir), FIELD(22, std_out), FIELD(23, std_err),
                  FIELD(28, submit_line), NAMED_FIELD(30, "given", older_given),
                  FIELD(31, priority_class), FIELD(36, mail), FIELD(37, wckey), FIELD(72, labels),
                  FIELD(75, sandbox), FIELD(76, work_type))
  };
  struct Who {
    Gid gid{};
    GANTRY_FIELDS(FIELD(2, gid))
  };
  Spec spec;
  Who owner;
  GANTRY_FIELDS(FIELD(1, spec), FIELD(2, owner))
};

}  // namespace gantry::core
