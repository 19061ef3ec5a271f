// Setters of job options, for job_option_table.h, place_option_table.h and batch_option_table.h.
// Each one reads its value into the request. The error for a wrong value quotes it and says what is
// allowed.
#pragma once

#include "cli/submit/job_request.h"

namespace gantry::cli::job {

Result<void> set_nodes(JobRequest& r, std::string_view text);
Result<void> set_tasks(JobRequest& r, std::string_view text);
Result<void> set_cpus(JobRequest& r, std::string_view text);
Result<void> set_overcommit(JobRequest& r, std::string_view text);
Result<void> set_min_cpus(JobRequest& r, std::string_view text);
Result<void> set_tasks_per_node(JobRequest& r, std::string_view text);
Result<void> set_gpus_per_node(JobRequest& r, std::string_view text);
Result<void> set_gpus_in_all(JobRequest& r, std::string_view text);
Result<void> set_gpus_per_task(JobRequest& r, std::string_view text);
Result<void> set_gpu_names(JobRequest& r, std::string_view text);
Result<void> set_gres(JobRequest& r, std::string_view text);
Result<void> set_licenses(JobRequest& r, std::string_view text);
Result<void> set_mem_per_gpu(JobRequest& r, std::string_view text);
Result<void> set_mem(JobRequest& r, std::string_view text);
Result<void> set_mem_or_all(JobRequest& r, std::string_view text);  // 0: all memory of the node
Result<void> set_mem_per_cpu(JobRequest& r, std::string_view text);
Result<void> set_tmp(JobRequest& r, std::string_view text);
Result<void> set_time(JobRequest& r, std::string_view text);
Result<void> set_time_or_none(JobRequest& r, std::string_view text);  // 0: no limit
Result<void> set_begin(JobRequest& r, std::string_view text);
Result<void> set_deadline(JobRequest& r, std::string_view text);
// The controller refuses one in the past.
Result<void> set_deadline_or_past(JobRequest& r, std::string_view text);
Result<void> set_array(JobRequest& r, std::string_view text);
Result<void> set_dependency(JobRequest& r, std::string_view text);
Result<void> set_kill_on_invalid(JobRequest& r, std::string_view text);
Result<void> set_nodelist(JobRequest& r, std::string_view text);
Result<void> set_exclude(JobRequest& r, std::string_view text);
Result<void> set_exclusive(JobRequest& r, std::string_view text);
Result<void> set_gpu_models(JobRequest& r, std::string_view text);
Result<void> set_tolerations(JobRequest& r, std::string_view text);
Result<void> set_topology(JobRequest& r, std::string_view text);
Result<void> set_anti_affinity(JobRequest& r, std::string_view text);
Result<void> set_spread(JobRequest& r, std::string_view text);
Result<void> set_nice(JobRequest& r, std::string_view text);
Result<void> set_priority(JobRequest& r, std::string_view text);
Result<void> set_hold(JobRequest& r, std::string_view text);
Result<void> set_requeue(JobRequest& r, std::string_view text);
Result<void> set_no_requeue(JobRequest& r, std::string_view text);
Result<void> set_signal(JobRequest& r, std::string_view text);
Result<void> set_open_mode(JobRequest& r, std::string_view text);
Result<void> set_mail_type(JobRequest& r, std::string_view text);
Result<void> set_mail_user(JobRequest& r, std::string_view text);
Result<void> set_io(JobRequest& r, std::string_view text);
Result<void> set_secret(JobRequest& r, std::string_view text);
Result<void> set_dataset(JobRequest& r, std::string_view text);
Result<void> add_stage_in(JobRequest& r, std::string_view text);
Result<void> add_stage_out(JobRequest& r, std::string_view text);
Result<void> set_sandbox(JobRequest& r, std::string_view text);
Result<void> set_identity(JobRequest& r, std::string_view text);
Result<void> set_net(JobRequest& r, std::string_view text);
Result<void> set_network(JobRequest& r, std::string_view text);
Result<void> set_mounts(JobRequest& r, std::string_view text);
Result<void> set_container_writable(JobRequest& r, std::string_view text);
Result<void> set_constraint(JobRequest& r, std::string_view text);
Result<void> set_export(JobRequest& r, std::string_view text);

Result<void> check_text(std::string_view text);  // allows one line of at most 4096 bytes

template <std::string JobSpec::*Member>
Result<void> spec_text(JobRequest& r, std::string_view text) {
  TRY(check_text(text));
  r.spec.*Member = text;
  return {};
}
template <std::string JobSpec::*Member>
Result<void> spec_word(JobRequest& r, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "must not be empty");
  return spec_text<Member>(r, text);
}
template <std::string ContainerSpec::*Member>
Result<void> container_text(JobRequest& r, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::invalid_argument, "must not be empty");
  TRY(check_text(text));
  r.spec.container.*Member = text;
  return {};
}

}  // namespace gantry::cli::job
