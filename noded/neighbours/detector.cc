#include "noded/neighbours/detector.h"

#include <algorithm>

namespace gantry::neighbours {
namespace {

// A job that waits so much by its own doing is told. Who keeps its cores busy, or its disk, waits
// for them a little by nature; for memory nobody should have to wait.
constexpr double kOwnHarm = 0.3;
constexpr double kUsualStep = 0.2;  // how fast the mean of a job's use follows
constexpr std::size_t kNewest = 3, kOfNewest = 2;

// The first of the last rows in which `is` holds, if it holds in two of the last three and in the
// last one or the one before.
template <class Is>
std::optional<Instant> lasts(const std::deque<Row>& rows, const Is& is) {
  std::size_t seen = 0, held = 0;
  std::optional<Instant> since;
  for (auto row = rows.rbegin(); row != rows.rend() && seen < kNewest; ++row, ++seen) {
    if (!is(*row)) continue;
    ++held;
    since = row->at;
  }
  return held >= kOfNewest ? since : std::nullopt;
}

template <class Is>
bool over(const std::deque<Row>& rows, const Is& is) {
  std::size_t seen = 0;
  for (auto row = rows.rbegin(); row != rows.rend() && seen < Detector::kQuietRows; ++row, ++seen)
    if (is(*row)) return false;
  return true;
}

bool names(const Verdict& verdict, const proto::AttemptKey& key) {
  return std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                     [&](const Culprit& one) { return one.key == key; });
}

// Named culprits stay; an answer that names somebody or something takes the place of "unknown".
// The time before goes out of sight after a minute; what was found with it stays.
void join(Verdict& known, Verdict&& now) {
  if (known.compared && !now.compared) return;
  if (known.cause == Cause::unknown || now.confidence > known.confidence) {
    if (known.cause != Cause::neighbours || now.cause == Cause::neighbours) {
      for (const Culprit& one : known.culprits)
        if (!names(now, one.key)) now.culprits.push_back(one);
      known = std::move(now);
    }
  }
}

}  // namespace

std::map<Channel, Row> Detector::now() const {
  std::map<Channel, Row> out;
  for (const auto& [channel, kept] : channels_)
    if (!kept.rows.empty() && before_ && kept.rows.back().at == before_->at)
      out[channel] = kept.rows.back();
  return out;
}

void Detector::take(Sample sample) {
  if (before_) {
    for (auto& [channel, row] : rates(*before_, sample)) {
      Kept& kept = channels_[channel];
      kept.rows.push_back(std::move(row));
      if (kept.rows.size() > kRows) kept.rows.pop_front();
      look(channel, kept);
    }
    std::erase_if(channels_, [&](const auto& one) {  // a device that is gone
      return one.second.rows.back().at != sample.at;
    });
    for (Finding& f : findings_)
      if (!f.ended && (!channels_.contains(f.channel) ||
                       (f.victim && channels_[f.channel].rows.back().of(*f.victim) == nullptr)))
        f.ended = sample.at;
  }
  before_ = std::move(sample);
  forget_old();
}

void Detector::look(const Channel& channel, Kept& kept) {
  for (const JobRow& job : kept.rows.back().jobs) look_at_job(channel, kept, job);
  look_at_channel(channel, kept);
  learn(kept, rules_.of(channel.resource));
}

void Detector::look_at_job(const Channel& channel, const Kept& kept, const JobRow& job) {
  const Rule& rule = rules_.of(channel.resource);
  const auto it = kept.usual.find(job.key);
  const std::optional<double> usual =
      it == kept.usual.end() ? std::nullopt : std::optional(it->second);
  const auto by_others = [&](const Row& row) {
    const JobRow* one = row.of(job.key);
    return one != nullptr && is_held_up(row, *one, rule, usual);
  };
  const auto by_itself = [&](const Row& row) {
    const JobRow* one = row.of(job.key);
    return one != nullptr &&
           one->own >= (rule.resource == Resource::memory ? rule.harmed : kOwnHarm);
  };
  const auto alone = [&](const Row& row) {
    const JobRow* one = row.of(job.key);
    return one != nullptr && is_filled_alone(row, *one, rule);
  };
  const Row& row = kept.rows.back();
  Finding* open = open_finding(channel, job.key);
  if (const auto since = lasts(kept.rows, by_others)) {
    if (!by_others(row)) return;
    Verdict verdict = blame(kept.rows, job.key, rule, usual);
    Finding& f = open != nullptr ? *open : found(channel, job.key, row, *since);
    join(f.verdict, std::move(verdict));
    f.last = row.at;
    f.evidence = {row.level, rule.saturated, job.held_up(), job.own,
                  row.use > 0 ? row.machine() / row.use : 0};
    if (!job.waited && usual) f.evidence.held_up = 1 - job.use / *usual;
  } else if (const auto own = lasts(kept.rows, by_itself); own && by_itself(row)) {
    Finding& f = open != nullptr ? *open : found(channel, job.key, row, *own);
    if (f.verdict.cause == Cause::unknown)
      f.verdict = {Cause::itself, {}, std::min(1.0, 0.5 + job.own / 2), false};
    f.last = row.at;
    f.evidence = {row.level, rule.saturated, job.held_up(), job.own, 0};
  } else if (const auto filled = lasts(kept.rows, alone); filled && alone(row)) {
    look_alone(channel, kept, job, *filled);
  } else if (open != nullptr && over(kept.rows, by_others) && over(kept.rows, by_itself) &&
             over(kept.rows, alone)) {
    open->ended = row.at;
  }
}

// A finding that somebody else was named in stays as it is.
void Detector::look_alone(const Channel& channel, const Kept& kept, const JobRow& job,
                          Instant since) {
  const Row& row = kept.rows.back();
  const Rule& rule = rules_.of(channel.resource);
  Finding* open = open_finding(channel, job.key);
  Verdict verdict = blame_alone(kept.rows, job.key, rule);
  const bool says =
      verdict.compared && (verdict.cause == Cause::itself || verdict.cause == Cause::unknown);
  if (open == nullptr && !says) return;
  Finding& f = open != nullptr ? *open : found(channel, job.key, row, since);
  if (says && f.verdict.cause == Cause::unknown) f.verdict = std::move(verdict);
  f.last = row.at;
  f.evidence = {row.level, rule.saturated, 0, job.alone, 0};
}

void Detector::look_at_channel(const Channel& channel, const Kept& kept) {
  const Rule& rule = rules_.of(channel.resource);
  const auto full = [&](const Row& row) { return row.level >= rule.saturated; };
  const Row& row = kept.rows.back();
  Finding* open = open_finding(channel, std::nullopt);
  if (const auto since = lasts(kept.rows, full); since && full(row)) {
    Finding& f = open != nullptr ? *open : found(channel, std::nullopt, row, *since);
    f.last = row.at;
    f.evidence = {row.level, rule.saturated, 0, 0, row.use > 0 ? row.machine() / row.use : 0};
    f.verdict = {};
    for (const JobRow& job : row.jobs)
      if (row.use > 0 && job.use >= 0.1 * row.use)
        f.verdict.culprits.push_back({job.key, std::min(job.use / row.use, 1.0), 0});
    std::stable_sort(f.verdict.culprits.begin(), f.verdict.culprits.end(),
                     [](const Culprit& a, const Culprit& b) { return a.share > b.share; });
    if (!f.verdict.culprits.empty()) f.verdict.cause = Cause::neighbours;
    if (f.evidence.machine >= 0.5) f.verdict.cause = Cause::machine;
  } else if (open != nullptr && over(kept.rows, full)) {
    open->ended = row.at;
  }
}

void Detector::learn(Kept& kept, const Rule& rule) {
  const Row& row = kept.rows.back();
  std::erase_if(kept.usual, [&](const auto& one) { return row.of(one.first) == nullptr; });
  for (const JobRow& job : row.jobs) {
    if (row.level >= full_from(rule, job.waited.has_value())) continue;
    const auto [it, is_new] = kept.usual.try_emplace(job.key, job.use);
    if (!is_new) it->second += kUsualStep * (job.use - it->second);
  }
}

Finding* Detector::open_finding(const Channel& channel,
                                const std::optional<proto::AttemptKey>& victim) {
  for (Finding& f : findings_)
    if (!f.ended && f.channel == channel && f.victim == victim) return &f;
  return nullptr;
}

Finding& Detector::found(const Channel& channel, const std::optional<proto::AttemptKey>& victim,
                         const Row& row, Instant since) {
  Finding& f = findings_.emplace_back();
  f.number = next_++;
  f.channel = channel;
  f.victim = victim;
  f.since = since;
  f.last = row.at;
  return f;
}

// The oldest that have ended go first, then the oldest of all.
void Detector::forget_old() {
  while (findings_.size() > kMostFindings) {
    const auto ended = std::find_if(findings_.begin(), findings_.end(),
                                    [](const Finding& f) { return f.ended.has_value(); });
    findings_.erase(ended != findings_.end() ? ended : findings_.begin());
  }
}

}  // namespace gantry::neighbours
