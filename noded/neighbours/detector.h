// Keeps the last rows of each channel of one node, and says who is held up there and why.
//
// A finding is made when a job was held up in two of the last three rows, and ends when it was not
// in the last five. While it lasts, its verdict is looked at again with each row, but named
// culprits stay named: when they are held back, their use falls and the reason for naming them with
// it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "noded/neighbours/rates.h"

namespace gantry::neighbours {

// What is told about one job that is held up, or about a channel that is full.

using Cause = proto::SharingCause;

struct Culprit {
  proto::AttemptKey key;
  double share = 0;  // of what was used of the channel, 0 to 1
  double rise = 0;   // its part of what came to be used more than before, 0 to 1
};

struct Verdict {
  Cause cause = Cause::unknown;
  std::vector<Culprit> culprits;  // neighbours only; the greatest rise first
  double confidence = 0;          // 0 to 1
  bool compared = false;          // with rows in which the victim was not held up
};

// The numbers on which a finding rests, as of the last row in which the victim was held up.
struct Evidence {
  double level = 0;      // of the channel, as Rule::saturated has it
  double saturated = 0;  // the rule's threshold
  double held_up = 0;    // the victim's, net of what it brought on itself
  double own = 0;        // what it brought on itself
  double machine = 0;    // share of the use that belongs to no job
};

struct Finding {
  std::uint64_t number = 0;  // of this detector; counts from 1
  Channel channel;
  std::optional<proto::AttemptKey> victim;  // unset: the channel is full, and no job suffers
  Instant since{};                          // the first row in which it was so
  Instant last{};                           // the last one
  std::optional<Instant> ended;
  Verdict verdict;
  Evidence evidence;
};

// Who holds up one job on one channel: a pure function of the last rows.
//
// Rows in which the victim is held up are set beside quiet ones. Who uses more of the channel in
// the first than in the second has brought it about, and whoever uses much, but no more than
// before, has not. If nobody uses more (a disk that has become slow), the cause is unknown. Without
// quiet rows only shares of use are known, which gives less confidence.

// From this level on a channel holds back somebody, where waiting is not counted.
inline constexpr double kFull = 0.9;
double full_from(const Rule& rule, bool waiting_is_counted);

// Is the job held up in this row? `usual` is what it used before the channel was full, for jobs
// whose waiting the kernel does not count.
bool is_held_up(const Row& row, const JobRow& job, const Rule& rule,
                const std::optional<double>& usual);

// The rows are the oldest first, and `victim` is in the last one.
Verdict blame(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule,
              const std::optional<double>& usual);

// Does the job wait for a full disk that it alone uses? Whoever reads does so; it is worth telling
// if there was a time before in which the disk was not full.
bool is_filled_alone(const Row& row, const JobRow& job, const Rule& rule);
// Why it has come to that: the job wants more than before (`itself`), or the disk does less
// (`unknown`). `compared` is false if there is no time before.
Verdict blame_alone(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule);

class Detector {
 public:
  explicit Detector(Rules rules) : rules_(rules) {}

  // Samples come in the order of their times.
  void take(Sample sample);

  // What holds now, and what has ended lately, in the order of their numbers. At most
  // kMostFindings.
  [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }
  // The newest row of each channel.
  [[nodiscard]] std::map<Channel, Row> now() const;

  static constexpr std::size_t kRows = 20;  // a minute of samples, three seconds apart
  static constexpr std::size_t kMostFindings = 64;
  static constexpr std::size_t kQuietRows = 5;

 private:
  // What one job used of a channel while nobody was held up there: a slow mean.
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
