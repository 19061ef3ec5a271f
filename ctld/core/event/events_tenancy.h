// Events of tenancy documents and reservations; see events.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/proto/tenant_events.h"
#include "ctld/core/event/event_fields.h"
#include "ctld/core/state/tenancy_state.h"

namespace gantry::core::event {

struct TenancyApplied {  // everything that one apply or rollback changed
  std::uint64_t revision = 0;
  std::string author;
  std::string comment;
  std::vector<DocumentChange> changes;
  std::vector<std::string> new_classes;  // priority classes that get an index, in order
  GANTRY_EVENT(50, "tenancy_applied") {
    v(1, "revision", s.revision);
    v(2, "author", s.author);
    v(3, "comment", s.comment);
    v(4, "changes", s.changes);
    v(5, "new_classes", s.new_classes);
  }
};

struct ReservationSet {  // made, or changed
  AdvanceReservation reservation;
  GANTRY_EVENT(51, "reservation_set") { v(1, "reservation", s.reservation); }
};

struct ReservationRemoved {
  std::string name;
  std::string by;  // "" = its time is over
  GANTRY_EVENT(52, "reservation_removed") {
    v(1, "name", s.name);
    v(2, "by", s.by);
  }
};

struct JobCheckpointed {  // work up to the checkpoint would not be lost
  JobId job{};
  std::optional<Instant> saved{};  // time of the checkpoint, before this event
  GANTRY_EVENT(53, "job_checkpointed") {
    v(1, "job", s.job);
    v(2, "saved", s.saved);
  }
};

struct HalfLifeSet {  // a change of the configuration
  Duration half_life{};
  GANTRY_EVENT(54, "half_life_set") { v(1, "half_life", s.half_life); }
};

struct UseReset {                    // what was used up of limits of use is forgotten
  std::vector<std::string> records;  // keys of State::used
  GANTRY_EVENT(80, "use_reset") { v(1, "records", s.records); }
};

struct QuotaFilled {  // a tenant's use has reached a threshold of what it owns
  proto::QuotaAlert alert;
  GANTRY_EVENT(55, "quota_filled") { v(1, "alert", s.alert); }
};

// GPUs of a running job do nothing, and the alert's step says what is done about it. With step
// none, all of them do something again.
struct GpusIdle {
  JobId job{};
  proto::QuotaAlert alert;  // with step none: names no tenant and is not kept
  GANTRY_EVENT(56, "gpus_idle") {
    v(1, "job", s.job);
    v(2, "alert", s.alert);
  }
};

}  // namespace gantry::core::event
