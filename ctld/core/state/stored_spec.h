// A job's spec as it lies in the store: immutable, written once, with the submit. SpecHead and
// SpecTail read parts of it without the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "spec", s.spec);
    v(2, "owner", s.owner);
    v(3, "script_digest", s.script_digest);
    v(4, "environment_digest", s.environment_digest);
    v(5, "request_id", s.request_id);
    v(6, "script_bytes", s.script_bytes);
    v(7, "environment_bytes", s.environment_bytes);
  }
};

// Reads from the same bytes only what the always-loaded part of a Job needs. Field numbers are
// JobSpec's.
struct SpecHead {
  struct Container {
    std::string image;
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(1, "image", s.image);
    }
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
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(1, "kind", s.kind);
      v(2, "name", s.name);
      v(4, "account", s.account);
      v(6, "shape", s.shape);
      v(10, "deadline", s.deadline);
      v(11, "dependencies", s.dependencies);
      v(12, "any_dependency", s.any_dependency);
      v(13, "cancel_on_invalid_dependency", s.cancel_on_invalid_dependency);
      v(14, "array", s.array);
      v(15, "nice", s.nice);
      v(16, "priority", s.priority);
      v(18, "requeue", s.requeue);
      v(19, "warn_signal", s.warn_signal);
      v(25, "container", s.container);
      v(31, "priority_class", s.priority_class);
      v(33, "reservation", s.reservation);
      v(35, "het", s.het);
      v(42, "time_min", s.time_min);
      v(45, "no_kill", s.no_kill);
      v(73, "secrets", s.secrets);
      v(85, "datasets", s.datasets);
      v(88, "replica", s.replica);
    }
  };
  struct Who {
    Uid uid{};
    std::string user;
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(1, "uid", s.uid);
      v(3, "user", s.user);
    }
  };
  Spec spec;
  Who owner;
  Bytes script_digest;
  Bytes environment_digest;
  std::string request_id;
  std::uint32_t script_bytes = 0;
  std::uint32_t environment_bytes = 0;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "spec", s.spec);
    v(2, "owner", s.owner);
    v(3, "script_digest", s.script_digest);
    v(4, "environment_digest", s.environment_digest);
    v(5, "request_id", s.request_id);
    v(6, "script_bytes", s.script_bytes);
    v(7, "environment_bytes", s.environment_bytes);
  }
};

// Reads the little that timers and metrics ask of many jobs. Field numbers are those of StoredSpec
// and JobSpec.
struct SpecExtras {
  struct Spec {
    std::map<std::string, std::string> labels;
    std::vector<StageCopy> stage_in;
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(72, "labels", s.labels);
      v(86, "stage_in", s.stage_in);
    }
  };
  Spec spec;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "spec", s.spec);
  }
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
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(5, "comment", s.comment);
      v(20, "work_dir", s.work_dir);
      v(22, "std_out", s.std_out);
      v(23, "std_err", s.std_err);
      v(28, "submit_line", s.submit_line);
      v(30, "given", s.older_given);
      v(31, "priority_class", s.priority_class);
      v(36, "mail", s.mail);
      v(37, "wckey", s.wckey);
      v(72, "labels", s.labels);
      v(75, "sandbox", s.sandbox);
      v(76, "work_type", s.work_type);
    }
  };
  struct Who {
    Gid gid{};
    template <class Self, class V>
    static void fields(Self& s, V&& v) {
      v(2, "gid", s.gid);
    }
  };
  Spec spec;
  Who owner;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "spec", s.spec);
    v(2, "owner", s.owner);
  }
};

}  // namespace gantry::core
