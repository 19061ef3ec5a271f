#include "noded/neighbours/detector.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace gantry::neighbours {

namespace {

// A job that waits this much because of its own use is reported. Jobs that keep their cores or disk
// busy always wait for them a little; for memory no job should have to wait.
constexpr double kOwnHarm = 0.3;
constexpr double kUsualStep = 0.2;  // weight of a new row in the mean of a job's use
constexpr std::size_t kNewest = 3, kOfNewest = 2;

// The first of the last rows in which `is` is true, if it is true in two of the last three rows and
// in one of the last two.
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
  return std::ranges::any_of(verdict.culprits, [&](const Culprit& one) { return one.key == key; });
}

// Named culprits stay; a verdict with a cause replaces "unknown". Earlier rows are dropped after a
// minute; what was found with them stays.
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

constexpr double kLeastRise = 0.1;     // part of all use below which no job is the cause
constexpr double kCulpritRise = 0.25;  // a culprit's least part of the rise
constexpr double kCulpritShare = 0.1;  // and of the use
constexpr double kOwnRise = 0.35;  // from this part of the rise on, a victim is itself the cause
constexpr double kKnownByShareAlone = 0.4;
constexpr double kLeastCorrelation = 0.2;
constexpr double kFillsAlone = 0.5;     // waits this much for a disk that nobody else uses
constexpr double kByFallAlone = 0.6;    // confidence factor where waiting is not counted
constexpr double kHardlyUsed = 0.001;   // part of a device's capacity below which use harms nobody
constexpr std::size_t kEnoughRows = 6;  // rows needed for a correlation to exclude a job

// Use and waiting of one suspect, one entry per row.
struct Track {
  double harmed = 0, quiet = 0;  // means of its use in rows with and without harm
  double share = 0;              // part of all use while the victim is slowed down
  double rise = 0;
  double correlation = 0;  // correlation of its use with the victim's waiting
};

struct Split {
  std::vector<double> harm;  // for each row of `rows`: how much the victim was slowed down
  std::vector<bool> harmed, quiet;
  std::size_t harmed_rows = 0, quiet_rows = 0;
};

double mean_where(const std::vector<double>& values, const std::vector<bool>& in) {
  double sum = 0, n = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (in[i]) sum += values[i], n += 1;
  return n > 0 ? sum / n : 0;
}

double pearson(const std::vector<double>& a, const std::vector<double>& b, std::size_t lag) {
  if (a.size() < lag + 3) return 0;
  const std::size_t n = a.size() - lag;
  double ma = 0, mb = 0;
  for (std::size_t i = 0; i < n; ++i) ma += a[i], mb += b[i + lag];
  ma /= static_cast<double>(n);
  mb /= static_cast<double>(n);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = a[i] - ma, y = b[i + lag] - mb;
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return aa <= 0 || bb <= 0 ? 0 : ab / std::sqrt(aa * bb);
}

Split split(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule,
            const std::optional<double>& usual) {
  Split out;
  for (const Row& row : rows) {
    const JobRow* job = row.of(victim);
    const bool harmed = job != nullptr && is_held_up(row, *job, rule, usual);
    const bool counted = job != nullptr && job->waited;
    const bool full = row.level >= full_from(rule, counted);
    // Rows from before the job started are left out: otherwise its own start would count as a rise.
    const bool quiet =
        job != nullptr && !harmed && (!full || (counted && job->held_up() < rule.harmed / 2));
    out.harm.push_back(counted ? (full ? job->held_up() : 0.0) : row.level);
    out.harmed.push_back(harmed);
    out.quiet.push_back(quiet);
    out.harmed_rows += harmed ? 1 : 0;
    out.quiet_rows += quiet ? 1 : 0;
  }
  return out;
}

// The same for a job that waits for a disk which it alone saturates.
Split split_alone(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule) {
  Split out;
  for (const Row& row : rows) {
    const JobRow* job = row.of(victim);
    const bool harmed = job != nullptr && is_filled_alone(row, *job, rule);
    const bool quiet = job != nullptr && row.level < rule.saturated;
    out.harm.push_back(harmed ? job->alone : 0.0);
    out.harmed.push_back(harmed);
    out.quiet.push_back(quiet);
    out.harmed_rows += harmed ? 1 : 0;
    out.quiet_rows += quiet ? 1 : 0;
  }
  return out;
}

Track track(const std::vector<double>& use, const Split& split) {
  Track t;
  t.harmed = mean_where(use, split.harmed);
  t.quiet = mean_where(use, split.quiet);
  t.rise = std::max(t.harmed - t.quiet, 0.0);
  t.correlation = std::max(pearson(use, split.harm, 0), pearson(use, split.harm, 1));
  return t;
}

bool share_cores(const JobRow& a, const JobRow& b) {
  if (a.cpus.empty() || b.cpus.empty()) return true;
  auto i = a.cpus.begin();
  auto j = b.cpus.begin();
  while (i != a.cpus.end() && j != b.cpus.end()) {
    if (*i == *j) return true;
    if (*i < *j)
      ++i;
    else
      ++j;
  }
  return false;
}

// The tracks of all possible causes: jobs, the victim itself, the machine.
struct Field {
  std::map<proto::AttemptKey, Track> others;
  Track victim, machine;
  double use = 0;  // use of all of them while the victim is slowed down
  double rise = 0;
  double quiet = 0;  // use of all of them in quiet rows
};

Field field_of(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Split& split) {
  Field out;
  std::set<proto::AttemptKey> keys;
  const JobRow& harmed = *rows.back().of(victim);
  for (const Row& row : rows)
    for (const JobRow& job : row.jobs)
      if (share_cores(job, harmed)) keys.insert(job.key);
  std::vector<double> use(rows.size());
  for (const proto::AttemptKey& key : keys) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const JobRow* job = rows[i].of(key);
      use[i] = job == nullptr ? 0 : job->use;
    }
    (key == victim ? out.victim : out.others[key]) = track(use, split);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) use[i] = rows[i].machine();
  out.machine = track(use, split);
  const auto add = [&](const Track& t) {
    out.use += t.harmed;
    out.rise += t.rise;
    out.quiet += t.quiet;
  };
  for (const auto& [key, t] : out.others) add(t);
  add(out.victim);
  add(out.machine);
  if (out.use <= 0) return out;
  for (auto& [key, t] : out.others) t.share = t.harmed / out.use;
  out.victim.share = out.victim.harmed / out.use;
  out.machine.share = out.machine.harmed / out.use;
  return out;
}

void order(std::vector<Culprit>& culprits) {
  std::ranges::stable_sort(culprits, [](const Culprit& a, const Culprit& b) {
    return a.rise != b.rise ? a.rise > b.rise : a.share > b.share;
  });
}

bool follows(const Track& t, std::size_t rows) {
  return rows < kEnoughRows || t.correlation >= kLeastCorrelation;
}

// Used when there is no row from before the slowdown: judges by present shares alone.
Verdict by_share(const Field& f) {
  Verdict out;
  if (f.victim.share >= 0.6) return {Cause::itself, {}, 0.5, false};
  for (const auto& [key, t] : f.others)
    if (t.share >= kKnownByShareAlone && t.share >= 1.5 * f.victim.share)
      out.culprits.push_back({key, t.share, 0});
  order(out.culprits);
  if (!out.culprits.empty()) {
    out.cause = Cause::neighbours;
    out.confidence = 0.5 * out.culprits.front().share;
  } else if (f.machine.share >= kKnownByShareAlone) {
    out.cause = Cause::machine;
    out.confidence = 0.5 * f.machine.share;
  }
  return out;
}

Verdict by_rise(const Field& f, std::size_t rows) {
  Verdict out;
  if (f.rise < kLeastRise * std::max(f.use, f.quiet)) return {Cause::unknown, {}, 0.5, true};
  if (f.victim.rise >= kOwnRise * f.rise && follows(f.victim, rows))
    return {Cause::itself, {}, std::clamp(0.3 + 0.6 * f.victim.rise / f.rise, 0.0, 1.0), true};
  double risen = 0, correlation = 0;
  for (const auto& [key, t] : f.others) {
    const double rise = t.rise / f.rise;
    if (rise < kCulpritRise || t.share < kCulpritShare || !follows(t, rows)) continue;
    out.culprits.push_back({key, t.share, rise});
    risen += rise;
    correlation = std::max(correlation, t.correlation);
  }
  order(out.culprits);
  const bool machine = f.machine.rise >= kCulpritRise * f.rise &&
                       f.machine.share >= kCulpritShare && follows(f.machine, rows);
  if (machine &&
      (out.culprits.empty() || f.machine.rise > 2 * out.culprits.front().rise * f.rise)) {
    out.cause = Cause::machine;
    out.culprits.clear();
    risen = f.machine.rise / f.rise;
    correlation = f.machine.correlation;
  } else if (!out.culprits.empty()) {
    out.cause = Cause::neighbours;
  } else {
    return {Cause::unknown, {}, 0.3, true};
  }
  out.confidence = std::clamp(0.1 + 0.5 * risen + 0.4 * std::max(correlation, 0.0), 0.0, 1.0);
  return out;
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
    std::erase_if(channels_, [&](const auto& one) {  // devices that are gone
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

// A finding that named another job stays as it is.
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
    std::ranges::stable_sort(f.verdict.culprits,
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

// Drops the oldest findings that have ended first, then the oldest of all.
void Detector::forget_old() {
  while (findings_.size() > kMostFindings) {
    const auto ended =
        std::ranges::find_if(findings_, [](const Finding& f) { return f.ended.has_value(); });
    findings_.erase(ended != findings_.end() ? ended : findings_.begin());
  }
}

double full_from(const Rule& rule, bool waiting_is_counted) {
  return waiting_is_counted ? rule.saturated : std::max(rule.saturated, kFull);
}

bool is_held_up(const Row& row, const JobRow& job, const Rule& rule,
                const std::optional<double>& usual) {
  if (row.level < full_from(rule, job.waited.has_value())) return false;
  if (job.waited) return job.held_up() >= rule.harmed;
  const double most = row.use / row.level;
  return usual && *usual > kHardlyUsed * most && !job.limited && job.use < (1 - kFall) * *usual;
}

bool is_filled_alone(const Row& row, const JobRow& job, const Rule& rule) {
  return rule.resource == Resource::disk && row.level >= rule.saturated && job.alone >= kFillsAlone;
}

Verdict blame_alone(const std::deque<Row>& rows, const proto::AttemptKey& victim,
                    const Rule& rule) {
  const Split parts = split_alone(rows, victim, rule);
  if (parts.quiet_rows < 2) return {};
  const Field f = field_of(rows, victim, parts);
  return f.use <= 0 ? Verdict{} : by_rise(f, rows.size());
}

Verdict blame(const std::deque<Row>& rows, const proto::AttemptKey& victim, const Rule& rule,
              const std::optional<double>& usual) {
  const Split parts = split(rows, victim, rule, usual);
  const Field f = field_of(rows, victim, parts);
  if (f.use <= 0) return {};
  Verdict out = parts.quiet_rows < 2 ? by_share(f) : by_rise(f, rows.size());
  out.compared = parts.quiet_rows >= 2;
  // A job may do less for reasons of its own.
  if (!rows.back().of(victim)->waited) out.confidence *= kByFallAlone;
  return out;
}

}  // namespace gantry::neighbours
