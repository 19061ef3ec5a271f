// The special members of the records of messages.
#include "common/proto/cluster.h"
#include "common/proto/history.h"
#include "common/proto/job_network.h"
#include "common/proto/job_query.h"
#include "common/proto/job_submit.h"
#include "common/proto/node_order.h"
#include "common/proto/node_report.h"
#include "common/proto/reservation.h"
#include "common/proto/services.h"
#include "common/proto/use.h"

namespace gantry::proto {

GANTRY_DEFINE_SPECIAL_MEMBERS(SubmitJob)
GANTRY_DEFINE_SPECIAL_MEMBERS(JobFilter)
GANTRY_DEFINE_SPECIAL_MEMBERS(JobRow)
GANTRY_DEFINE_SPECIAL_MEMBERS(JobDetail)
GANTRY_DEFINE_SPECIAL_MEMBERS(HistoryRow)
GANTRY_DEFINE_SPECIAL_MEMBERS(NodeRow)
GANTRY_DEFINE_SPECIAL_MEMBERS(ReservationRow)
GANTRY_DEFINE_SPECIAL_MEMBERS(UseRow)
GANTRY_DEFINE_SPECIAL_MEMBERS(ServiceRow)
GANTRY_DEFINE_SPECIAL_MEMBERS(NodeRegister)
GANTRY_DEFINE_SPECIAL_MEMBERS(Launch)
GANTRY_DEFINE_SPECIAL_MEMBERS(JobNetwork)

}  // namespace gantry::proto
