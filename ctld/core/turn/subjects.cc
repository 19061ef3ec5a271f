// The one table of all subjects. See ctld/core/subject.h for what their order means.
#include <array>

#include "ctld/core/job/subject.h"
#include "ctld/core/job/submit/subject.h"
#include "ctld/core/limits/subject.h"
#include "ctld/core/money/subject.h"
#include "ctld/core/neighbours/subject.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/notify/subject.h"
#include "ctld/core/partition/subject.h"
#include "ctld/core/resize/subject.h"
#include "ctld/core/services/subject.h"
#include "ctld/core/tenancy/subject.h"
#include "ctld/core/turn/subject.h"

namespace gantry::core {

std::span<const Subject* const> subjects() {
  static constexpr std::array kAll{
      &kNodeTimers,
      &kJobTimers,
      &kRoles,
      &kHold,
      &kAdmission,
      &kDependencies,
      &kBeginTime,
      &kArrayLimit,
      &kLicenses,
      &kWindows,
      &kPriority,
      &kMonths,
      &kUseLimits,
      &kBudgets,
      &kPartitions,
      &kUseDecay,
      &kServices,
      &kPlanning,
      &kForgetting,
      &kRunHabits,
      &kTriggers,
      &kCancelMessages,
      &kCheckpointMessages,
      &kHoldMessages,
      &kIdentityMessages,
      &kListMessages,
      &kLogMessages,
      &kNetworkMessages,
      &kNoteMessages,
      &kNotifyMessages,
      &kRequeueMessages,
      &kStepMessages,
      &kSubmitMessages,
      &kSuspendMessages,
      &kTopMessages,
      &kUpdateMessages,
      &kWaitMessages,
      &kUseMessages,
      &kBudgetMessages,
      &kLedgerMessages,
      &kPostedMessages,
      &kNeighboursMessages,
      &kClusterMessages,
      &kEnrollmentMessages,
      &kListNodesMessages,
      &kNodeRegisterMessages,
      &kNodeReportMessages,
      &kReservationMessages,
      &kTriggerMessages,
      &kPartitionMessages,
      &kStepLimitMessages,
      &kGateMessages,
      &kServiceMessages,
      &kAccessMessages,
      &kPriorityMessages,
      &kQuotaAlertsMessages,
      &kSecretMessages,
      &kTenancyMessages,
      &kTenantViewMessages,
  };
  return kAll;
}

}  // namespace gantry::core
