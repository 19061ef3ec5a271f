// One handler per message, each a free function in the handle_*.cc of its group. A handler answers
// its request exactly once, now or (WaitJobs, ReadLog) later. authorise() has allowed it before. A
// line of messages.def that says `core` and has no handler here does not compile.
#pragma once

#include "common/result.h"
#include "ctld/core/request.h"

namespace gantry::sched {
struct Plan;
}

namespace gantry::core {

struct Context;

// handle_submit.cc
void handle(Context&, const ClientRequest&, proto::SubmitJob&&);
void handle(Context&, const ClientRequest&, proto::SubmitTogether&&);
// handle_list.cc
void handle(Context&, const ClientRequest&, proto::ListJobs&&);
void handle(Context&, const ClientRequest&, proto::ShowJob&&);
// handle_cancel.cc
void handle(Context&, const ClientRequest&, proto::CancelJobs&&);
// handle_hold.cc
void handle(Context&, const ClientRequest&, proto::HoldJobs&&);
void handle(Context&, const ClientRequest&, proto::ReleaseJobs&&);
// handle_requeue.cc
void handle(Context&, const ClientRequest&, proto::RequeueJobs&&);
// handle_suspend.cc
void handle(Context&, const ClientRequest&, proto::SuspendJobs&&);
void handle(Context&, const ClientRequest&, proto::NotifyJobs&&);
void handle(Context&, const ClientRequest&, proto::TopJobs&&);
void handle(Context&, const ClientRequest&, proto::ResumeJobs&&);
// handle_update.cc
void handle(Context&, const ClientRequest&, proto::UpdateJob&&);
// handle_note.cc
void handle(Context&, const ClientRequest&, proto::NoteJobs&&);
// handle_wait.cc
void handle(Context&, const ClientRequest&, proto::WaitJobs&&);
void drop_waits(Context&, ConnectionId connection);
// handle_log.cc
void handle(Context&, const ClientRequest&, proto::ReadLog&&);
void handle(Context&, const ClientRequest&, proto::ProbeNetwork&&);
// handle_access.cc
void handle(Context&, const ClientRequest&, proto::ListAccess&&);
// neighbours.cc
void handle(Context&, const ClientRequest&, proto::ListNeighbours&&);
// handle_cluster.cc
void handle(Context&, const ClientRequest&, proto::ListNodes&&);
void handle(Context&, const ClientRequest&, proto::UpdateNodes&&);
void handle(Context&, const ClientRequest&, proto::ListPartitions&&);
void handle(Context&, const ClientRequest&, proto::ShowConfig&&);
void handle(Context&, const ClientRequest&, proto::EnrollNode&&);
// handle_enrollment.cc
void handle(Context&, const ClientRequest&, proto::ChangeEnrollment&&);
void handle(Context&, const ClientRequest&, proto::ListEnrollment&&);
void handle(Context&, const ClientRequest&, proto::RegisterKey&&);
void handle(Context&, const ClientRequest&, proto::ShowStats&&);
void handle(Context&, const ClientRequest&, proto::ResetStats&&);
void handle(Context&, const ClientRequest&, proto::Ping&&);
// handle_partition.cc
void handle(Context&, const ClientRequest&, proto::UpdatePartition&&);
void handle(Context&, const ClientRequest&, proto::ChangePartition&&);
void handle(Context&, const ClientRequest&, proto::ListUse&&);
void handle(Context&, const ClientRequest&, proto::ResetUse&&);
// handle_step.cc
void handle(Context&, const ClientRequest&, proto::StepCreate&&);
void handle(Context&, const ClientRequest&, proto::StepDone&&);
void handle(Context&, const ClientRequest&, proto::EndAllocation&&);
void handle(Context&, const ClientRequest&, proto::SignalStep&&);
// handle_step_limit.cc
void handle(Context&, const ClientRequest&, proto::UpdateStep&&);
void handle(Context&, const ClientRequest&, proto::StepAttach&&);
// handle_trigger.cc
void handle(Context&, const ClientRequest&, proto::SetTrigger&&);
void handle(Context&, const ClientRequest&, proto::ListTriggers&&);
void handle(Context&, const ClientRequest&, proto::ClearTriggers&&);
// checkpoint.cc
void handle(Context&, const ClientRequest&, proto::CheckpointJobs&&);

// handle_tenancy.cc
void handle(Context&, const ClientRequest&, proto::ApplyTenancy&&);
void handle(Context&, const ClientRequest&, proto::GetTenancy&&);
void handle(Context&, const ClientRequest&, proto::TenancyHistory&&);
// handle_tenant_view.cc
void handle(Context&, const ClientRequest&, proto::TenantUsage&&);
void handle(Context&, const ClientRequest&, proto::ShareTree&&);
void handle(Context&, const ClientRequest&, proto::PriorityTuples&&);
void handle(Context&, const ClientRequest&, proto::TenantEvents&&);
// handle_secret.cc
void handle(Context&, const ClientRequest&, proto::SetSecret&&);
void handle(Context&, const ClientRequest&, proto::RemoveSecret&&);
void handle(Context&, const ClientRequest&, proto::ListSecrets&&);
// handle_gate.cc, handle_service.cc
void handle(Context&, const ClientRequest&, proto::SyncGate&&);
void handle(Context&, const ClientRequest&, proto::ListServices&&);
void handle(Context&, const ClientRequest&, proto::ChangeService&&);
// handle_ledger.cc
void handle(Context&, const ClientRequest&, proto::QueryLedger&&);
// posted.cc
void handle(Context&, const ClientRequest&, proto::ImportMeter&&);
void handle(Context&, const ClientRequest&, proto::ListMeters&&);
// handle_budget.cc
void handle(Context&, const ClientRequest&, proto::ListBudgets&&);
void handle(Context&, const ClientRequest&, proto::AskIncrease&&);
void handle(Context&, const ClientRequest&, proto::DecideIncrease&&);
void handle(Context&, const ClientRequest&, proto::ListIncreases&&);
// handle_reservation.cc
void handle(Context&, const ClientRequest&, proto::MakeReservation&&);
void handle(Context&, const ClientRequest&, proto::RemoveReservation&&);
void handle(Context&, const ClientRequest&, proto::ListReservations&&);

// From a node: handle_node_register.cc, handle_node_report.cc, handle_log.cc.
void handle(Context&, NodeId, proto::NodeRegister&&);
void handle(Context&, NodeId, proto::Heartbeat&&);
void handle(Context&, NodeId, proto::GpuReport&&);
void handle(Context&, NodeId, proto::LaunchReady&&);
void handle(Context&, NodeId, proto::Started&&);
void handle(Context&, NodeId, proto::Frozen&&);
void handle(Context&, NodeId, proto::ExitReport&&);
void handle(Context&, NodeId, proto::Goodbye&&);
void handle(Context&, NodeId, proto::FetchLogReply&&);
void handle(Context&, NodeId, proto::AttemptProbed&&);
// handle_identity.cc
void handle(Context&, NodeId, proto::RenewIdentity&&);
// Ends the attempts that the node did not list when it registered, once that list is certain.
void judge_missing(Context&, NodeId);

// Answers a request with an error, and counts it.
void refuse(Context&, const ClientRequest&, const Error&);

// plan_apply.cc: starts the jobs that the plan starts, as far as they still fit.
void apply_plan(Context&, sched::Plan&&);

}  // namespace gantry::core
