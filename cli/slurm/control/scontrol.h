// The parts of scontrol: what it shows and what it changes. Each verb is a function of its words.
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
  bool json = false;
  bool yaml = false;
};
using Arguments = std::vector<std::string>;

// Exit statuses; what went wrong has been printed.
int control_show(const Control& c, const Arguments& args);
int control_show_slurmd(const Control& c, const std::string& node);  // "" = this one
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

// "too few arguments for keyword:hold" when there are fewer.
bool has_arguments(const Arguments& args, std::string_view keyword, std::size_t least = 1);

// Says "PREFIX: Slurm's words" on standard error; returns 1.
int control_error(std::string_view prefix, const Error& error);

// "12" of "12", "jobid=12", "job=12"; the key in lower case, "" when there is none.
struct KeyValue {
  std::string key;
  std::string value;
};
KeyValue key_value(const std::string& word);

// One KEY=VALUE of `update JobId=`. False: the key is not one that can be changed.
Result<bool> set_job_key(const Control& c, proto::UpdateJob& update, const KeyValue& pair);

}  // namespace gantry::cli::slurm
