#include "noded/neighbours/restraint.h"

#include <algorithm>

namespace gantry::neighbours {
namespace {

constexpr double kHeldTo = 0.05;          // part of its use to which it is throttled
constexpr double kLeastBytes = 250'000;   // bytes per second, the least limit
constexpr std::uint64_t kHeldWeight = 5;  // cpu weight of a throttled job; the default is 100
constexpr double kPresses = 0.5;          // part of a hold: a job that uses less does not need it
constexpr std::uint32_t kIdleRows = 5;
constexpr double kHelped =
    1.2;  // factor of its former rate from which a victim on a link counts as helped
constexpr std::uint32_t kRowsToHelp = 4;

}  // namespace

Restraint::Step Restraint::step(Instant now, const std::vector<Finding>& findings,
                                const std::map<Channel, Row>& rows, const Floor& floor) {
  Step out;
  for (Hold& hold : holds_) {
    if (hold.undone) continue;
    const auto channel = rows.find(hold.channel);
    const JobRow* job = channel == rows.end() ? nullptr : channel->second.of(hold.key);
    const bool is_cpu = hold.channel.resource == Resource::cpu;
    const bool presses =
        job != nullptr && (is_cpu || job->use >= kPresses * static_cast<double>(hold.most));
    hold.idle = presses ? 0 : hold.idle + 1;
    const bool helped = helps(hold, channel == rows.end() ? nullptr : &channel->second);
    if (now < hold.until && hold.idle < kIdleRows && helped) continue;
    end(hold, now, out);
    if (!helped) past_[{hold.key, hold.channel}].not_before = now + rules_.longest;
  }
  for (const Finding& f : findings) {
    if (f.ended || !f.victim || f.verdict.cause != Cause::neighbours) continue;
    const auto row = rows.find(f.channel);
    const double needed =
        f.channel.resource == Resource::network ? rules_.link_confidence : rules_.confidence;
    if (f.verdict.confidence < needed || row == rows.end()) continue;
    if (f.last == row->second.at) consider(now, f, row->second, floor, out);
  }
  while (holds_.size() > kMostHolds) {
    const auto over =
        std::ranges::find_if(holds_, [](const Hold& hold) { return hold.undone.has_value(); });
    if (over == holds_.end()) break;
    holds_.erase(over);
  }
  std::erase_if(past_, [&](const auto& one) {
    return now - one.second.ended > rules_.forgotten &&
           (!one.second.not_before || *one.second.not_before < now);
  });
  return out;
}

// Returns false after kRowsToHelp rows in which the victim has gained nothing: the wrong job may be
// throttled. Call it once for each row.
bool Restraint::helps(Hold& hold, const Row* row) {
  if (!hold.victim) return true;
  const JobRow* victim = row == nullptr ? nullptr : row->of(*hold.victim);
  if (victim == nullptr) return true;  // it has ended, or there is no row of this time
  if (victim->use >= kHelped * hold.victim_use) {
    hold.victim.reset();
    return true;
  }
  return ++hold.in_vain < kRowsToHelp;
}

void Restraint::consider(Instant now, const Finding& f, const Row& row, const Floor& floor,
                         Step& out) {
  const bool is_link = f.channel.resource == Resource::network;
  const bool has_rate = is_link || f.channel.resource == Resource::disk;
  if (!has_rate && f.channel.resource != Resource::cpu) return;
  for (const Culprit& culprit : f.verdict.culprits) {
    const JobRow* job = row.of(culprit.key);
    const bool held = std::ranges::any_of(holds_, [&](const Hold& hold) {
      return !hold.undone && hold.key == culprit.key && hold.channel == f.channel;
    });
    if (job == nullptr || held) continue;
    const auto in_force =
        std::ranges::count_if(holds_, [](const Hold& hold) { return !hold.undone; });
    if (static_cast<std::size_t>(in_force) >= kMostHolds) return;
    const auto past = past_.find({culprit.key, f.channel});
    if (past != past_.end() && past->second.not_before && now < *past->second.not_before) continue;
    Hold hold;
    hold.key = culprit.key;
    hold.channel = f.channel;
    hold.most = kHeldWeight;
    const JobRow* victim = is_link ? row.of(*f.victim) : nullptr;
    if (victim != nullptr) {
      hold.victim = f.victim;
      hold.victim_use = victim->use;
    }
    if (has_rate) {
      hold.most = static_cast<std::uint64_t>(std::max(kLeastBytes, kHeldTo * job->use));
      hold.most = std::max(hold.most, floor(culprit.key, f.channel));
      if (job->use <= static_cast<double>(hold.most))
        continue;  // the job uses no more than its own rate
    }
    hold.length = rules_.first;
    if (past != past_.end() && past->second.times > 0) {
      hold.length = std::min(past->second.length * 2, rules_.longest);
      hold.times = past->second.times + 1;
    }
    hold.since = now;
    hold.until = now + hold.length;
    holds_.push_back(hold);
    out.set.push_back(hold);
  }
}

void Restraint::end(Hold& hold, Instant now, Step& out) {
  hold.undone = now;
  past_[{hold.key, hold.channel}] = {hold.length, hold.times, now, std::nullopt};
  out.undo.push_back(hold);
}

void Restraint::failed(const Hold& hold, Instant now) {
  std::erase_if(holds_, [&](const Hold& one) {
    return one.key == hold.key && one.channel == hold.channel && one.since == hold.since;
  });
  past_[{hold.key, hold.channel}].ended = now;
  past_[{hold.key, hold.channel}].not_before = now + hold.length;
}

}  // namespace gantry::neighbours
