#include "ctld/sched/queue/order.h"

#include <algorithm>

namespace gantry::sched {

// ---- FairWalk

bool FairWalk::Key::operator<(const Key& b) const {
  const Key& a = *this;
  if (a.rank != b.rank) return a.rank > b.rank;
  if (a.among != b.among) return a.among > b.among;
  if (a.account != b.account) return a.account;
  return a.account ? a.node < b.node : before(a.first, b.first);
}

std::uint32_t FairWalk::node_of(std::uint32_t share) {
  const auto at = std::lower_bound(by_share_.begin(), by_share_.end(), share,
                                   [](const auto& e, std::uint32_t s) { return e.first < s; });
  if (at != by_share_.end() && at->first == share) return at->second;
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  by_share_.insert(at, {share, index});
  nodes_.emplace_back();
  nodes_[index].share = share;
  nodes_[index].key.node = index;
  if (tree_ == nullptr || share == kNoShare || !tree_->knows(ShareId{share})) return index;
  nodes_[index].key.among = tree_->among_siblings(ShareId{share}, now_);
  if (const auto parent = tree_->parent(ShareId{share})) {
    const std::uint32_t above = node_of(parent->value());
    nodes_[above].key.account = true;
    nodes_[index].parent = above;
  }
  return index;
}

// The position of the node among its parent's children, or the position that it would get.
std::vector<std::uint32_t>::iterator FairWalk::place_of(std::uint32_t n) {
  auto& children = nodes_[nodes_[n].parent].children;
  return std::lower_bound(
      children.begin(), children.end(), n,
      [this](std::uint32_t a, std::uint32_t b) { return nodes_[a].key < nodes_[b].key; });
}

void FairWalk::enter(std::uint32_t n) {
  nodes_[nodes_[n].parent].children.insert(place_of(n), n);
  nodes_[n].entered = true;
}

void FairWalk::leave(std::uint32_t n) {
  if (!std::exchange(nodes_[n].entered, false)) return;
  nodes_[nodes_[n].parent].children.erase(place_of(n));
}

// An account has the best rank of the nodes below it.
void FairWalk::update_accounts(std::uint32_t n) {
  for (n = nodes_[n].parent; n != kTop; n = nodes_[n].parent) {
    Node& account = nodes_[n];
    const bool some = !account.children.empty();
    if (account.entered == some && (!some || account.key.rank == first_of(n).rank)) return;
    leave(n);
    if (!some) continue;
    account.key.rank = first_of(n).rank;
    enter(n);
  }
}

void FairWalk::offer(std::uint32_t share, const Waiting& first) {
  const std::uint32_t n = node_of(share);
  leave(n);
  nodes_[n].key.rank = first.rank;
  nodes_[n].key.first = first;
  enter(n);
  update_accounts(n);
}

void FairWalk::withdraw(std::uint32_t share) {
  const std::uint32_t n = node_of(share);
  leave(n);
  update_accounts(n);
}

void FairWalk::charged(std::uint32_t share) {
  if (tree_ == nullptr || share == kNoShare || !tree_->knows(ShareId{share})) return;
  for (std::uint32_t n = node_of(share); n != kTop; n = nodes_[n].parent) {
    const bool entered = nodes_[n].entered;
    leave(n);
    nodes_[n].key.among = tree_->among_siblings(ShareId{nodes_[n].share}, now_);
    if (entered) enter(n);
  }
}

double FairWalk::level(const Key& key) const {
  return tree_ == nullptr ? 0 : tree_->level(ShareId{nodes_[key.node].share}, now_);
}

// An account that ties with another child is handled together with it.
std::uint32_t FairWalk::best() const {
  std::uint32_t n = kTop;
  do {
    const auto& children = nodes_[n].children;
    const Key& first = nodes_[children[0]].key;
    if (first.account && children.size() > 1 && first.ties(nodes_[children[1]].key))
      return nodes_[best_below({n})].share;
    n = children[0];  // users that tie are in the order of their jobs
  } while (nodes_[n].key.account);
  return nodes_[n].share;
}

// The children of equal accounts are ranked together.
std::uint32_t FairWalk::best_below(const std::vector<std::uint32_t>& parents) const {
  std::vector<std::uint32_t> first;  // parents whose first child is the best
  for (const std::uint32_t p : parents) {
    if (!first.empty()) {
      const Key &a = first_of(p), &b = first_of(first[0]);
      const auto better = std::pair{a.rank, level(a)} <=> std::pair{b.rank, level(b)};
      if (better < 0) continue;
      if (better > 0) first.clear();
    }
    first.push_back(p);
  }
  std::vector<std::uint32_t> accounts;
  const Key* user = nullptr;
  for (const std::uint32_t p : first) {
    for (const std::uint32_t n : nodes_[p].children) {
      const Key& key = nodes_[n].key;
      if (!key.ties(first_of(p))) break;
      if (key.account) {
        accounts.push_back(key.node);
        continue;
      }
      if (user == nullptr || before(key.first, user->first)) user = &key;
      break;  // users that tie are in the order of their jobs
    }
  }
  if (accounts.empty()) return user->node;
  return user == nullptr ? best_below(accounts) : best_by_ranking();
}

// For a user who ties with an account: the rank depends on users without waiting jobs, too.
std::uint32_t FairWalk::best_by_ranking() const {
  const Key* best = nullptr;
  std::uint32_t rank = 0;
  for (const FairRank& r : tree_->ranking(tree_->root_of(ShareId{nodes_[1].share}), now_)) {
    const auto at = std::lower_bound(by_share_.begin(), by_share_.end(), r.leaf.value(),
                                     [](const auto& e, std::uint32_t s) { return e.first < s; });
    if (at == by_share_.end() || at->first != r.leaf.value()) continue;
    const Node& node = nodes_[at->second];
    if (!node.entered) continue;
    const auto better = best == nullptr
                            ? std::strong_ordering::greater
                            : std::pair{node.key.rank, r.rank} <=> std::pair{best->rank, rank};
    if (better < 0 || (better == 0 && !before(node.key.first, best->first))) continue;
    best = &node.key;
    rank = r.rank;
  }
  return best->node;
}

// ---- Order

namespace {

bool later_turn(const LineTurn& a, const LineTurn& b) {
  return before(b.first, a.first);
}

}  // namespace

bool Order::User::touched_first() const {
  return !touched.empty() &&
         (untouched == lines->end() || before(touched.front().first, untouched->first));
}

const Waiting& Order::User::first() const {
  return touched_first() ? touched.front().first : untouched->first;
}

bool Order::later(const OrderKey& a, const OrderKey& b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.rank != b.rank) return a.rank < b.rank;
  if (a.levels != b.levels) return a.levels > b.levels;
  for (std::size_t i = 0; i < a.values.size(); ++i)
    if (a.values[i] != b.values[i]) return a.values[i] > b.values[i];
  return before_others(b.first, a.first);
}

Order::Order(const Queue& queue, const ShareTree* shares, const QuotaTree* quota, Instant now,
             Standings standings, KnownKeys& keys, const std::vector<std::uint32_t>& busy,
             std::optional<Passing> passing)
    : queue_(queue),
      shares_(shares),
      quota_(quota),
      now_{now.us - now.us % kShareStep.us},
      standings_(std::move(standings)),
      keys_(keys),
      passing_(std::move(passing)) {
  tenants_.reserve(busy.size());
  heap_.reserve(busy.size());
  if (!busy.empty() && keys_.keys_.size() <= busy.back()) keys_.keys_.resize(busy.back() + 1);
  for (const std::uint32_t partition : busy) {
    tenants_.emplace_back(partition, queue_.partition(partition).priority, now_);
    if (passing_) tenants_.back().failures = passing_->failures();
    heap_.push_back(first_key(static_cast<std::uint32_t>(tenants_.size() - 1)));
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
}

// Builds the tenant's users without the skipped lines, which are their first ones.
void Order::build(Tenant& tenant) {
  if (std::exchange(tenant.built, true)) return;
  const PartitionQueue& queue = queue_.partition(tenant.partition);
  // A single user has nobody to be compared with.
  tenant.walk = FairWalk(queue.users.size() > 1 ? shares_ : nullptr, now_);
  tenant.users.reserve(queue.users.size());
  for (const auto& [share, lines] : queue.users)
    tenant.users.push_back({share, &lines, lines.begin(), {}});
  for (std::uint32_t i = 0; i < tenant.step; ++i)
    ++user_of(tenant, known_of(tenant).steps[i].share).untouched;
  for (const User& user : tenant.users)
    if (!user.empty()) tenant.walk.offer(user.share, user.first());
}

// The tenant's key before this plan has done anything.
OrderKey Order::first_key(std::uint32_t t) {
  Tenant& tenant = tenants_[t];
  KnownKeys::Known& known = known_of(tenant);
  const bool same_order =
      known.known && known.at == now_ &&
      (!known.root || (shares_ != nullptr && known.shares == shares_->version(*known.root)));
  const bool same_quota = known.quota_node == kNoIndex ||
                          (quota_ != nullptr && known.quota == quota_->stamp(known.quota_node));
  if (!same_order) {
    known = {true, now_, std::nullopt, 0, {}, kNoIndex, 0, {}};
    const auto& users = queue_.partition(tenant.partition).users;
    for (const auto& [share, lines] : users) {
      if (users.size() == 1 || shares_ == nullptr || !shares_->knows(ShareId{share})) continue;
      const ShareId root = shares_->root_of(ShareId{share});
      if (known.root && *known.root != root) known.known = false;  // users of several trees
      known.root = root;
      known.shares = shares_->version(root);
    }
  }
  tenant.stepping = !known.steps.empty() && passing_ && passing_->lines(tenant.partition);
  tenant.noting = known.steps.empty();
  if (!tenant.stepping) build(tenant);
  if (!same_order || !same_quota) {
    known.key = key_of(t);
    if (quota_ != nullptr && known.quota_node == kNoIndex)
      known.quota_node =
          standings_(tenant.partition, queue_.line(best_user(tenant).first().line).class_index)
              .quota_node;
    if (known.quota_node != kNoIndex) known.quota = quota_->stamp(known.quota_node);
  }
  known.key.tenant = t;
  known.key.version = version_;
  return known.key;
}

Order::User& Order::user_of(Tenant& tenant, std::uint32_t share) {
  return *std::lower_bound(tenant.users.begin(), tenant.users.end(), share,
                           [](const User& u, std::uint32_t s) { return u.share < s; });
}

Order::User& Order::best_user(Tenant& tenant) {
  build(tenant);
  return tenant.users.size() == 1 ? tenant.users[0] : user_of(tenant, tenant.walk.best());
}

LineTurn Order::peek(Tenant& tenant, User& user) {
  if (user.touched_first()) return user.touched.front();
  LineTurn turn;
  turn.line = user.untouched->first.line;
  turn.class_index = queue_.line(turn.line).class_index;
  turn.partition = tenant.partition;
  turn.tenant = static_cast<std::uint32_t>(&tenant - tenants_.data());
  turn.first = user.untouched->first;
  return turn;
}

OrderKey Order::key_of(std::uint32_t t) {
  Tenant& tenant = tenants_[t];
  OrderKey key;
  QuotaStanding standing;
  if (tenant.stepping) {
    const Step& step = known_of(tenant).steps[tenant.step];
    key.first = step.first;
    standing.quota_node = known_of(tenant).quota_node;
    standing.need = step.need;
    if (standing.quota_node != kNoIndex && quota_ != nullptr)
      standing.levels = quota_->fit(standing.quota_node, standing.need).levels;
  } else {
    key.first = best_user(tenant).first();
    if (quota_ != nullptr)
      standing = standings_(tenant.partition, queue_.line(key.first.line).class_index);
  }
  key.priority = tenant.priority;
  key.rank = key.first.rank;
  key.tenant = t;
  key.version = version_;
  if (quota_ == nullptr || standing.quota_node == kNoIndex) return key;
  key.levels = standing.levels;
  quota_->share_values(standing.quota_node, standing.need, key.values);
  return key;
}

void Order::enter(std::uint32_t tenant) {
  heap_.push_back(key_of(tenant));
  std::push_heap(heap_.begin(), heap_.end(), later);
}

void Order::pop() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  heap_.pop_back();
}

// Works until the first tenant in the heap has an up-to-date key and must not be skipped.
bool Order::settle() {
  while (!heap_.empty()) {
    const std::uint32_t t = heap_.front().tenant;
    Tenant& tenant = tenants_[t];
    if (pass_all(tenant)) {
      tenant.skipped = true;
      pop();
    } else if (heap_.front().version != version_) {
      pop();
      enter(t);
    } else if (tenant.stepping && pass_line(t)) {
      pop();
      if (tenant.stepping) enter(t);
    } else {
      return true;
    }
  }
  return false;
}

bool Order::pass_all(Tenant& tenant) {
  if (!passing_) return false;
  const std::uint64_t failures = passing_->failures();
  if (failures == tenant.failures && version_ == tenant.version) return false;
  tenant.failures = failures;
  tenant.version = version_;
  return passing_->all(tenant.partition);
}

// Skips the tenant's first line; returns false if the line must be looked at.
bool Order::pass_line(std::uint32_t t) {
  Tenant& tenant = tenants_[t];
  const auto& steps = known_of(tenant).steps;
  if (!passing_->line(tenant.partition, steps[tenant.step])) {
    tenant.stepping = false;
    build(tenant);
    return false;
  }
  tenant.stepping = ++tenant.step < steps.size();
  tenant.skipped = !tenant.stepping;
  return true;
}

std::optional<std::pair<std::uint32_t, std::int32_t>> Order::front() {
  if (!settle()) return std::nullopt;
  return std::pair{heap_.front().priority, heap_.front().rank};
}

std::optional<LineTurn> Order::next() {
  if (!settle()) return std::nullopt;
  Tenant& tenant = tenants_[heap_.front().tenant];
  pop();
  User& user = best_user(tenant);
  LineTurn turn = peek(tenant, user);
  turn.passed = tenant.step;
  if (user.touched_first()) {
    std::pop_heap(user.touched.begin(), user.touched.end(), later_turn);
    user.touched.pop_back();
  } else {
    ++user.untouched;
  }
  return turn;
}

void Order::note(const LineTurn& turn, std::optional<Step> step) {
  Tenant& tenant = tenants_[turn.tenant];
  if (!tenant.noting) return;
  auto& steps = known_of(tenant).steps;
  tenant.noting = step.has_value();
  if (step)
    steps.push_back(*step);
  else
    steps.clear();
}

void Order::again(const LineTurn& turn) {
  User& user = user_of(tenants_[turn.tenant], queue_.line(turn.line).share);
  user.touched.push_back(turn);
  user.touched.back().fresh = false;
  std::push_heap(user.touched.begin(), user.touched.end(), later_turn);
  done(turn);
}

void Order::done(const LineTurn& turn) {
  Tenant& tenant = tenants_[turn.tenant];
  User& user = user_of(tenant, queue_.line(turn.line).share);
  if (user.empty())
    tenant.walk.withdraw(user.share);
  else
    tenant.walk.offer(user.share, user.first());
  if (!tenant.walk.empty()) enter(turn.tenant);
}

void Order::started(const LineTurn& turn) {
  tenants_[turn.tenant].walk.charged(queue_.line(turn.line).share);
  if (quota_ != nullptr) ++version_;
}

std::vector<LineTurn> Order::drain() {
  std::vector<LineTurn> rest;
  for (Tenant& tenant : tenants_)
    for (User& user : tenant.users) {
      if (tenant.noting && !user.empty()) known_of(tenant).steps.clear();
      if (tenant.skipped) continue;
      rest.insert(rest.end(), user.touched.begin(), user.touched.end());
    }
  heap_.clear();
  return rest;
}

}  // namespace gantry::sched
