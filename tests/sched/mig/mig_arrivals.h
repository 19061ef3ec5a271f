// Makes random jobs that want slices, and counts what becomes of them, for mig_demand.cc and
// mig_demand_cycle.cc. Every way to place jobs gets the same jobs.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/sched/mig/mig_demand.h"

namespace gantry::sched {

inline constexpr double kMeanSeconds = 3600;

// The source of arrivals for all modes; equal seeds give equal jobs.
class Arrivals {
 public:
  Arrivals(const MigTable& table, const DemandSetup& setup) : setup_(setup), random_(setup.seed) {
    double weight = 0, slices = 0;
    for (std::size_t p = 0; p < setup.mix.size(); ++p) {
      weight += setup.mix[p];
      slices += setup.mix[p] * table.profiles()[p].memory_slices;
    }
    const double all = setup.nodes * setup.gpus_per_node * table.memory_slices();
    rate_ = setup.load * all / (slices / weight * kMeanSeconds);
    weight_ = weight;
  }
  struct Job {
    JobId id;
    Instant at;
    std::uint32_t profile = 0;
    Duration run, limit;
  };
  Job next() {
    now_ = now_ + span(-std::log(uniform()) / rate_);
    Job job{JobId{++count_}, now_, 0, span(-std::log(uniform()) * kMeanSeconds), {}};
    double left = uniform() * weight_;
    while (job.profile + 1 < setup_.mix.size() && left > setup_.mix[job.profile])
      left -= setup_.mix[job.profile++];
    const double factor = 1 + uniform();
    job.limit = setup_.ends == KnownEnds::limits
                    ? Duration{static_cast<std::int64_t>(static_cast<double>(job.run.us) * factor)}
                    : job.run;
    return job;
  }

 private:
  static Duration span(double seconds) {
    return microseconds(1 + static_cast<std::int64_t>(seconds * 1e6));
  }
  double uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }

  const DemandSetup& setup_;
  std::mt19937_64 random_;
  double rate_ = 0, weight_ = 0;
  std::uint64_t count_ = 0;
  Instant now_{};
};

// Counts results from the end of the warm-up on.
class Count {
 public:
  Count(const MigTable& table, const DemandSetup& setup)
      : table_(table),
        setup_(setup),
        asked_(setup.mix.size(), 0),
        refused_(asked_),
        from_(setup.jobs / 10) {}
  void asked(const Arrivals::Job& job) { asked_[job.profile] += counts(job.id) ? 1 : 0; }
  void refused(const Arrivals::Job& job) { refused_[job.profile] += counts(job.id) ? 1 : 0; }
  void started(const Arrivals::Job& job, Duration wait) {
    if (!counts(job.id)) return;
    ++started_;
    waited_ += wait.us > 0 ? 1 : 0;
    wait_ += static_cast<double>(wait.us) * 1e-6;
    used_ += static_cast<double>(job.run.us) * 1e-6 * table_.profiles()[job.profile].memory_slices;
  }
  DemandResult result(double seconds) const {
    DemandResult r;
    double asked = 0, refused = 0, jobs = 0, lost = 0;
    for (std::size_t p = 0; p < asked_.size(); ++p) {
      const double size = table_.profiles()[p].memory_slices;
      asked += static_cast<double>(asked_[p]) * size;
      refused += static_cast<double>(refused_[p]) * size;
      jobs += static_cast<double>(asked_[p]);
      lost += static_cast<double>(refused_[p]);
      r.by_profile.push_back(
          asked_[p] == 0 ? 0 : static_cast<double>(refused_[p]) / static_cast<double>(asked_[p]));
    }
    r.refused = refused / asked;
    r.refused_jobs = lost / jobs;
    r.waited = static_cast<double>(waited_) / std::max(1.0, static_cast<double>(started_));
    r.mean_wait = wait_ / std::max(1.0, static_cast<double>(started_));
    r.allocated = used_ / (seconds * setup_.nodes * setup_.gpus_per_node * table_.memory_slices());
    return r;
  }
  [[nodiscard]] bool counts(JobId id) const { return id.value() > from_; }

 private:
  const MigTable& table_;
  const DemandSetup& setup_;
  std::vector<std::uint64_t> asked_, refused_;
  std::uint64_t from_, started_ = 0, waited_ = 0;
  double wait_ = 0, used_ = 0;
};

// Uses the real scheduler: the jobs are queued, planned (schedule.h) and placed as the controller
// does it.
DemandResult through_the_cycle(const DemandSetup& setup, const MigTable& table);

}  // namespace gantry::sched
