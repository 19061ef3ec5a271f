// Includes the headers of all messages, and defines number_of<Type>() from messages.def.
#pragma once

#include "common/proto/access.h"
#include "common/proto/budget.h"
#include "common/proto/cluster.h"
#include "common/proto/control.h"
#include "common/proto/history.h"
#include "common/proto/job_change.h"
#include "common/proto/job_network.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/ledger.h"
#include "common/proto/neighbours.h"
#include "common/proto/node_order.h"
#include "common/proto/node_relay.h"
#include "common/proto/node_report.h"
#include "common/proto/partitions.h"
#include "common/proto/reservation.h"
#include "common/proto/secrets.h"
#include "common/proto/services.h"
#include "common/proto/session.h"
#include "common/proto/step_attach.h"
#include "common/proto/steps.h"
#include "common/proto/tenancy.h"
#include "common/proto/tenancy_view.h"
#include "common/proto/tenant_events.h"
#include "common/proto/triggers.h"
#include "common/proto/use.h"

namespace gantry::proto {

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

}  // namespace gantry::proto
