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
    FIELD(1, revision), FIELD(2, author), FIELD(3, comment), FIELD(4, changes),
        FIELD(5, new_classes);
  }
};

struct ReservationSet {  // made, or changed
  AdvanceReservation reservation;
  GANTRY_EVENT(51, "reservation_set") { FIELD(1, reservation); }
};

struct ReservationRemoved {
  std::string name;
  std::string by;  // "" = the reservation has ended
  GANTRY_EVENT(52, "reservation_removed") { FIELD(1, name), FIELD(2, by); }
};

struct JobCheckpointed {  // work before the checkpoint is safe if the job is preempted
  JobId job{};
  std::optional<Instant> saved{};  // time of the checkpoint, before this event
  GANTRY_EVENT(53, "job_checkpointed") { FIELD(1, job), FIELD(2, saved); }
};

struct HalfLifeSet {  // the half-life of the fair share changed in the configuration
  Duration half_life{};
  GANTRY_EVENT(54, "half_life_set") { FIELD(1, half_life); }
};

struct UseReset {                    // the recorded use of limits of use is reset
  std::vector<std::string> records;  // keys of State::used
  GANTRY_EVENT(80, "use_reset") { FIELD(1, records); }
};

struct QuotaFilled {  // a tenant's use has reached a threshold of its quota
  proto::QuotaAlert alert;
  GANTRY_EVENT(55, "quota_filled") { FIELD(1, alert); }
};

// GPUs of a running job are idle, and the alert's step says what is done about it. With step none,
// all of them are busy again.
struct GpusIdle {
  JobId job{};
  proto::QuotaAlert alert;  // with step none the alert names no tenant and is not kept
  GANTRY_EVENT(56, "gpus_idle") { FIELD(1, job), FIELD(2, alert); }
};

}  // namespace gantry::core::event
