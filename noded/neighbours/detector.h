// Keeps the last rows of each channel of one node, and says who is held up there and why.
//
// A finding is made when a job was held up in two of the last three rows, and ends when it was not
// in the last five. While it lasts, its verdict is looked at again with each row, but named
// culprits stay named: when they are held back, their use falls and the reason for naming them with
// it.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "noded/neighbours/blame.h"

namespace gantry::neighbours {

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
