// Keeps the last rows of each channel of one node, and finds which jobs are slowed down there and
// why.
//
// A finding begins when a job was slowed down in two of the last three rows, and ends when it was
// not in the last five. While it lasts, each row updates its verdict, but named culprits stay
// named: when they are throttled, their use falls, and with it the reason for naming them.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "noded/neighbours/rates.h"

namespace gantry::neighbours {

// What is reported about one job that is slowed down, or about a saturated channel.

using Cause = proto::SharingCause;

struct Culprit {
  proto::AttemptKey key;
  double share = 0;  // part of the channel's use, 0 to 1
  double rise = 0;   // part of the rise in use, 0 to 1
};

struct Verdict {
  Cause cause = Cause::unknown;
  std::vector<Culprit> culprits;  // only other jobs; the greatest rise first
  double confidence = 0;          // 0 to 1
  bool compared = false;          // true if there were rows in which the victim was not slowed down
};

// The numbers behind a finding, from the last row in which the victim was slowed down.
struct Evidence {
  double level = 0;      // level of the channel, as in Rule::saturated
  double saturated = 0;  // the rule's threshold
  double held_up = 0;    // how much the victim was slowed down, without what it caused itself
  double own = 0;        // what it caused itself
  double machine = 0;    // share of the use that belongs to no job
};

struct Finding {
  std::uint64_t number = 0;  // number in this detector; counts from 1
  Channel channel;
  std::optional<proto::AttemptKey> victim;  // unset: the channel is saturated, and no job suffers
  Instant since{};                          // time of the first such row
  Instant last{};                           // time of the last such row
  std::optional<Instant> ended;
  Verdict verdict;
  Evidence evidence;
};

// Who slows down one job on one channel (cores, memory, a disk, a link): a pure function of the
// last rows.
//
// Rows in which the victim is slowed down are compared with quiet ones. Jobs that use more of the
// channel in the former are the cause; jobs that use much, but no more than before, are not. If no
// job uses more (for example if a disk has become slow), the cause is unknown. Without quiet rows
// only shares of use are known, which gives less confidence.

// From this level on a channel slows down jobs, where waiting is not counted.
inline constexpr double kFull = 0.9;
double full_from(const Rule& rule, bool waiting_is_counted);

// Whether the job is slowed down in this row. `usual` is what it used before the channel was
// saturated, for jobs whose waiting the kernel does not count.
bool is_held_up(const Row& row, const JobRow& job, const Rule& rule,
                const std::optional<double>& usual);

// The rows are ordered from oldest to newest; `victim` is in the last one.
Verdict blame(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule,
              const std::optional<double>& usual);

// Whether the job waits for a saturated disk that only it uses. Every reader does; it is worth
// reporting if the disk was not saturated at an earlier time.
bool is_filled_alone(const Row& row, const JobRow& job, const Rule& rule);
// The reason for that: the job wants more than before (`itself`), or the disk does less
// (`unknown`). `compared` is false if there are no earlier rows.
Verdict blame_alone(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule);

class Detector {
 public:
  explicit Detector(Rules rules) : rules_(rules) {}

  // Samples must come in the order of their times.
  void take(Sample sample);

  // Findings in force and those that ended lately, by number. At most kMostFindings.
  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
  // The newest row of each channel.
  [[nodiscard]] std::map<Channel, Row> now() const;

  static constexpr std::size_t kRows = 20;  // a minute of samples, one every three seconds
  static constexpr std::size_t kMostFindings = 64;
  static constexpr std::size_t kQuietRows = 5;

 private:
  // A job's mean use of a channel while no job was slowed down there, with slow adaptation.
  using Usual = std::map<proto::AttemptKey, double>;
  struct Kept {
    std::deque<Row> rows;
    Usual usual;
  };
  void look(const Channel& channel, Kept& kept);
  void look_at_job(const Channel& channel, const Kept& kept, const JobRow& job);
  void look_alone(const Channel& channel, const Kept& kept, const JobRow& job, Instant since);
  void look_at_channel(const Channel& channel, const Kept& kept);
  void learn(Kept& kept, const Rule& rule);
  Finding* open_finding(const Channel& channel, const std::optional<proto::AttemptKey>& victim);
  Finding& found(const Channel& channel, const std::optional<proto::AttemptKey>& victim,
                 const Row& row, Instant since);
  void forget_old();

  Rules rules_;
  std::optional<Sample> before_;
  std::map<Channel, Kept> channels_;
  std::vector<Finding> findings_;
  std::uint64_t next_ = 1;
};

}  // namespace gantry::neighbours
