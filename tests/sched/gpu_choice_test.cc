// Tests which GPUs of a node a job gets, by NVLink, NUMA node and number. A comparison with all
// possible groups shows that no group is better.
#include "ctld/sched/gpu/gpu_choice.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <tuple>

namespace gantry::sched {
namespace {

using List = std::vector<std::uint16_t>;
using Links = std::vector<std::vector<std::uint32_t>>;

std::vector<GpuView> gpus(const std::vector<std::int32_t>& numa, const Links& links = {}) {
  std::vector<GpuView> out;
  for (std::size_t i = 0; i < numa.size(); ++i) {
    GpuView& gpu = out.emplace_back();
    gpu.index = static_cast<std::uint16_t>(i);
    gpu.numa = numa[i];
    if (!links.empty()) gpu.nvlinks = links[i];
  }
  return out;
}

std::vector<bool> taken(std::size_t of, const std::set<std::size_t>& which) {
  std::vector<bool> out(of, false);
  for (const std::size_t i : which) out[i] = true;
  return out;
}

// Makes links in pairs, as on boards with bridges: 0-1, 2-3, ...
Links pairs(std::size_t n, std::uint32_t links) {
  Links out(n, std::vector<std::uint32_t>(n, 0));
  for (std::size_t i = 0; i + 1 < n; i += 2) out[i][i + 1] = out[i + 1][i] = links;
  return out;
}

TEST_CASE("two GPUs with a bridge are chosen, even if GPUs with lower numbers are free") {
  const auto node = gpus({0, 0, 0, 0}, pairs(4, 4));
  CHECK(choose_gpus(node, {}, 2) == List{0, 1});
  CHECK(choose_gpus(node, taken(4, {0}), 2) == List{2, 3});
  // A single GPU is chosen where no free pair is split.
  CHECK(choose_gpus(node, taken(4, {0}), 1) == List{1});
  CHECK(choose_gpus(node, taken(4, {3}), 1) == List{2});
  // NVLink counts more than the NUMA node.
  CHECK(choose_gpus(gpus({0, 1, 0, 1}, pairs(4, 4)), {}, 2) == List{0, 1});
  CHECK(choose_gpus(gpus({0, 1, 0, 1}, pairs(4, 4)), taken(4, {1}), 2) == List{2, 3});
}

TEST_CASE("GPUs of one NUMA node are chosen if there are no links, or all are alike") {
  CHECK(choose_gpus(gpus({0, 1, 0, 1}), {}, 2) == List{0, 2});
  CHECK(choose_gpus(gpus({0, 1, 1, 0, 1}), taken(5, {0}), 2) == List{1, 2});
  Links all(4, std::vector<std::uint32_t>(4, 18));
  for (std::size_t i = 0; i < 4; ++i) all[i][i] = 0;
  CHECK(choose_gpus(gpus({1, 0, 1, 0}, all), {}, 2) == List{0, 2});
  CHECK(choose_gpus(gpus({1, 0, 1, 0}, all), taken(4, {0}), 2) == List{1, 3});
}

TEST_CASE("among equal GPUs the lowest numbers are chosen, and never one in MIG mode") {
  CHECK(choose_gpus(gpus({-1, -1, -1, -1}), {}, 2) == List{0, 1});
  CHECK(choose_gpus(gpus({0, 0, 1, 1}), {}, 2) == List{0, 1});
  CHECK(choose_gpus(gpus({0, 1, 0, 1}, pairs(4, 2)), {}, 2) == List{0, 1});
  auto node = gpus({0, 0, 0, 0}, pairs(4, 4));
  node[0].mig = true;
  CHECK(choose_gpus(node, {}, 2) == List{2, 3});
  CHECK(choose_gpus(node, {}, 0).empty());
  CHECK(choose_gpus(node, {}, 3) == List{1, 2, 3});
}

// The cost of a group as the header defines it; lower is better.
auto cost(const std::vector<GpuView>& node, const std::vector<bool>& busy, const List& group) {
  std::int64_t inside = 0, cut = 0;
  std::set<std::int32_t> numa;
  const std::set<std::uint16_t> in(group.begin(), group.end());
  for (const GpuView& a : node) {
    if (!in.contains(a.index)) continue;
    numa.insert(a.numa);
    for (const GpuView& b : node) {
      if (busy[b.index] || b.mig || a.nvlinks.empty()) continue;
      (in.contains(b.index) ? inside : cut) += a.nvlinks[b.index];
    }
  }
  return std::tuple{-inside, numa.size(), cut, group};
}

TEST_CASE("no group of a small node is better than the one that is chosen") {
  std::mt19937_64 random(11);
  const auto pick = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 2'000; ++round) {
    const std::size_t n = 1 + pick(8);
    std::vector<std::int32_t> numa;
    Links links(n, std::vector<std::uint32_t>(n, 0));
    for (std::size_t i = 0; i < n; ++i) numa.push_back(static_cast<std::int32_t>(pick(3)) - 1);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < i; ++k)
        links[i][k] = links[k][i] = static_cast<std::uint32_t>(pick(3) == 0 ? pick(5) : 0);
    auto node = pick(4) == 0 ? gpus(numa) : gpus(numa, links);
    std::vector<bool> busy(n, false);
    List free;
    for (std::size_t i = 0; i < n; ++i) {
      node[i].mig = pick(8) == 0;
      busy[i] = pick(4) == 0;
      if (!node[i].mig && !busy[i]) free.push_back(static_cast<std::uint16_t>(i));
    }
    if (free.empty()) continue;
    const auto count = static_cast<std::uint32_t>(1 + pick(free.size()));
    const List chosen = choose_gpus(node, busy, count);
    REQUIRE(chosen.size() == count);
    for (std::uint32_t mask = 0; mask < 1u << free.size(); ++mask) {
      List group;
      for (std::size_t i = 0; i < free.size(); ++i)
        if ((mask >> i & 1) != 0) group.push_back(free[i]);
      if (group.size() != count) continue;
      CAPTURE(round);
      REQUIRE(cost(node, busy, chosen) <= cost(node, busy, group));
    }
  }
}

TEST_CASE("on a node with many GPUs a group on one switch is found") {
  // 16 GPUs on two switches; all GPUs of a switch are linked with each other.
  std::vector<std::int32_t> numa(16, 0);
  Links links(16, std::vector<std::uint32_t>(16, 0));
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t k = 0; k < 16; ++k)
      if (i != k && i % 2 == k % 2) links[i][k] = 12;
  CHECK(choose_gpus(gpus(numa, links), {}, 4) == List{0, 2, 4, 6});
  CHECK(choose_gpus(gpus(numa, links), taken(16, {0, 2, 4, 6, 8}), 4) == List{1, 3, 5, 7});
}

}  // namespace
}  // namespace gantry::sched
