// A job request of sbatch, srun or salloc: Slurm's options on top of Gantry's request.
#pragma once

#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/option.h"
#include "cli/step/step_options.h"
#include "common/proto/job_submit.h"

namespace gantry::cli::slurm {

// Derives from Gantry's request, so that the setters of Gantry's options work on it unchanged.
struct SlurmRequest : StepOptions {
  SlurmRequest() {
    // As in Slurm a job whose dependency can never be met keeps waiting, unless it asks to be
    // ended.
    spec.cancel_on_invalid_dependency = false;
    spec.gpu_names = GpuNames::index;
    spec.mail.if_possible = true;
  }
  std::optional<std::string> clusters;  // -M
  std::string export_file;              // --export-file
  std::optional<std::uint32_t> cpus_per_gpu, tasks_per_gpu, gpus_per_socket, sockets_per_node;
  std::optional<std::uint32_t> tasks_per_socket;
  bool get_user_env = false;
  std::string propagate = "ALL";      // --propagate
  std::string mem_bind_text;          // --mem-bind as it was given; "" = not given
  std::string gpu_freq;               // --gpu-freq as it was given; "" = not given
  std::uint32_t threads_of_node = 0;  // -B: sockets times cores times threads; 0 = not given
  std::string export_rule;            // --export as it was given; "" = not given
};

// Call it before finish_request(). It applies --ntasks-per-gpu and --propagate, and stores which
// options asked for GPUs, because clients read that. If there are more nodes than tasks it reduces
// the nodes, with Slurm's warning: each node has at least one task.
Result<void> before_finish(const Invocation& call, SlurmRequest& request,
                           std::span<const Given> given);
// `-m arbitrary`: the node of each task, in the order of --nodelist or of the file named by
// SLURM_HOSTFILE. The request gets these nodes, and on each as many cores as the node with the most
// tasks needs.
Result<void> name_hosts(SlurmRequest& request, std::span<const Given> given);
// Call it after finish_request(). It applies --cpus-per-gpu and Slurm's default names of output
// files.
Result<void> after_finish(SlurmRequest& request);

// The job's environment: from --export, --export-file, --get-user-env, and task_gpu_variables().
Result<std::map<std::string, std::string>> slurm_environment(const SlurmRequest& request);

// Prints --test-only's line. Slurm shows the id that the job would have got; here there is no such
// id.
void say_start(const std::string& program, const proto::SubmitReply& reply, Instant now);

namespace set {
Result<void> clusters(SlurmRequest& r, std::string_view text);
Result<void> wckey(SlurmRequest& r, std::string_view text);
Result<void> export_file(SlurmRequest& r, std::string_view text);
Result<void> nodefile(SlurmRequest& r, std::string_view text);
Result<void> cpus_per_gpu(SlurmRequest& r, std::string_view text);
Result<void> tasks_per_gpu(SlurmRequest& r, std::string_view text);
Result<void> immediate(SlurmRequest& r, std::string_view text);  // srun, salloc
Result<void> get_user_env(SlurmRequest& r, std::string_view text);
Result<void> propagate(SlurmRequest& r, std::string_view text);
Result<void> time_min(SlurmRequest& r, std::string_view text);
Result<void> contiguous(SlurmRequest& r, std::string_view text);
Result<void> spread_job(SlurmRequest& r, std::string_view text);
Result<void> tres_per_task(SlurmRequest& r, std::string_view text);
Result<void> qos(SlurmRequest& r, std::string_view text);
Result<void> distribution(SlurmRequest& r, std::string_view text);
Result<void> hint(SlurmRequest& r, std::string_view text);
Result<void> one(SlurmRequest& r, std::string_view text);   // only 1, which is Gantry's behaviour
Result<void> none(SlurmRequest& r, std::string_view text);  // only "none"
Result<void> no_kill(SlurmRequest& r, std::string_view text);
Result<void> oversubscribe(SlurmRequest& r, std::string_view text);
Result<void> gpus_per_socket(SlurmRequest& r, std::string_view text);
Result<void> gpu_freq(SlurmRequest& r, std::string_view text);
Result<void> sockets_per_node(SlurmRequest& r, std::string_view text);
Result<void> tasks_per_core(SlurmRequest& r, std::string_view text);
Result<void> tasks_per_socket(SlurmRequest& r, std::string_view text);
Result<void> threads_per_core(SlurmRequest& r, std::string_view text);
Result<void> node_info(SlurmRequest& r, std::string_view text);
Result<void> acctg_freq(SlurmRequest& r, std::string_view text);
Result<void> mem_bind(SlurmRequest& r, std::string_view text);
Result<void> switches(SlurmRequest& r, std::string_view text);
}  // namespace set

}  // namespace gantry::cli::slurm
