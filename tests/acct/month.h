// Plays the month that month.txt describes: State gets the events that the controller would record.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "ctld/core/event/event.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/sched/change.h"

namespace gantry::test {

std::string read_source(const std::string& name);  // reads a file of the folder tests/acct
// Parses a time in UTC such as "2026-10-20T08:00:00.250000".
Instant utc_time(const std::string& text);
std::vector<std::string> split_at(const std::string& text, char at);

class Month {
 public:
  Month();
  void play();  // applies all events of the month in the order of time

  [[nodiscard]] const core::State& state() const { return state_; }
  // Finds a job by its name in month.txt. play() must have run before.
  [[nodiscard]] const core::Job& job(const std::string& name) const {
    return state_.jobs.at(jobs_.at(name));
  }
  // This function is called before each event, with the state and the time of the event.
  std::function<void(const core::State&, Instant)> watch;

 private:
  struct Grant {
    NodeId node{};
    sched::NodeGrant grant;
    Instant until{};
    bool exclusive = false;
  };
  struct Attempt {
    std::string job, tenant, project, user, cls, type, how;
    Instant placed{};
    std::optional<Instant> saved;
    std::vector<std::string> nodes;
  };

  void add_nodes();
  void add_documents();
  void apply(Instant at, core::EventRef event);
  void change_prices(Instant at, const std::string& book, const std::string& model, Money price);
  JobId submitted(const Attempt& attempt);
  Grant grant_of(const std::string& text);
  void place(const Attempt& attempt);
  void end(const Attempt& attempt);

  Config config_;
  core::MutableState state_;
  std::map<std::string, JobId> jobs_;
  // attempts of each job that are still to come
  std::map<std::string, std::uint64_t> attempts_left_;
  std::map<JobId, std::vector<Grant>> grants_;  // what each job holds at this moment
};

}  // namespace gantry::test
