// The parts of scontrol, for showing and for changing. Each verb is a function of its words.
#pragma once

#include <string>
#include <vector>

#include "cli/slurm/frame.h"
#include "common/proto/job_change.h"

namespace gantry::cli::slurm {

struct Control {
  std::string program = "scontrol";
  int details = 0;  // -d, -dd
  bool oneline = false;
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  bool yaml = false;
};
using Arguments = std::vector<std::string>;

// These functions return exit statuses; errors are already printed.
int control_show(const Control& c, const Arguments& args);
// `args`: the words after `show`, of which the first is assoc_mgr.
int show_assoc_mgr(const Control& c, const Arguments& args);
int control_show_slurmd(const Control& c, const std::string& node);  // "" = this host's node
int control_ping(const Control& c, const Arguments& args);
int control_hold(const Control& c, const Arguments& args);
int control_release(const Control& c, const Arguments& args);
int control_suspend(const Control& c, const Arguments& args);
int control_resume(const Control& c, const Arguments& args);
int control_requeue(const Control& c, const Arguments& args);
int control_notify(const Control& c, const Arguments& args);
int control_requeuehold(const Control& c, const Arguments& args);
int control_update(const Control& c, const Arguments& args);
int control_create(const Control& c, const Arguments& args);
int control_delete(const Control& c, const Arguments& args);
int control_wait_job(const Control& c, const Arguments& args);
int control_write(const Control& c, const Arguments& args);
int control_completing(const Control& c, const Arguments& args);
int control_listpids(const Control& c, const Arguments& args);
int control_pidinfo(const Control& c, const Arguments& args);
int control_reconfigure(const Control& c, const Arguments& args);
int control_token(const Control& c, const Arguments& args);
int control_top(const Control& c, const Arguments& args);

// show_config() prints the key that `word` names, or with "" all keys. write_config() adds the time
// to the name of the file; with "" the file lies beside gantry.yaml.
int show_config(const Control& c, const std::string& word);
int write_config(const Control& c, const std::string& file);

// Checks that there are at least `least` arguments; else prints "too few arguments for
// keyword:hold".
bool has_arguments(const Arguments& args, std::string_view keyword, std::size_t least = 1);

// Prints "PREFIX: Slurm's words" on standard error; returns 1.
int control_error(std::string_view prefix, const Error& error);

// A word like "jobid=12", "job=12" or "12": the value is "12", and the key is in lower case, or ""
// if there is none.
struct KeyValue {
  std::string key;
  std::string value;
};
KeyValue key_value(const std::string& word);

// The words of create, update and delete for partitions. `word` is the entity as typed.
int create_partition(const Control& c, const Arguments& args);
int update_partition(const Control& c, const Arguments& args);
int delete_partition(const Control& c, const std::string& name, const std::string& word);

// Both print which KEY=VALUE is refused, and return 1.
int key_not_supported(const std::string& pair);
int key_value_refused(const std::string& pair, const Error& error);

// The words of create and update for reservations.
int create_reservation(const Control& c, const Arguments& args);
int update_reservation(const Control& c, const Arguments& args);

// The words of `update NodeName=`.
int update_nodes(const Control& c, const Arguments& args);

// For a running job, from inside it: writes the scripts slurm_job_ID_resize.sh and .csh, which set
// the variables with the job's size, and prints how to use them.
void write_resize_scripts(const Control& c, const proto::JobRef& job);

// Sets one KEY=VALUE of `update JobId=`. Returns false if the key cannot be changed.
Result<bool> set_job_key(const Control& c, proto::UpdateJob& update, const KeyValue& pair);

}  // namespace gantry::cli::slurm
