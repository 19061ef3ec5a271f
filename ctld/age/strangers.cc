#include "ctld/age/strangers.h"

#include <fmt/core.h>

#include <sstream>

#include "common/proto/attempt.h"
#include "ctld/age/high_water.h"

namespace gantry::age {

Result<Strangers> Strangers::load(const std::string& state_dir) {
  Strangers out;
  out.path_ = state_dir + "/strangers";
  ASSIGN(text, read_whole(out.path_));
  if (!*text) return out;
  std::istringstream in(**text);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string node;
    std::uint64_t job = 0;
    std::uint32_t attempt = 0;
    if (!(words >> node >> job >> attempt))
      return fail(ErrorCode::malformed,
                  fmt::format("{} has a line that is not NODE JOB ATTEMPT: \"{}\"; jobs that it "
                              "names are not ended by this controller",
                              out.path_, line));
    out.all_.insert({node, proto::AttemptKey{JobId(job), Attempt(attempt)}});
  }
  return out;
}

Result<void> Strangers::save() const {
  if (path_.empty()) return {};
  std::string text;
  for (const auto& [node, key] : all_)
    text += fmt::format("{} {} {}\n", node, key.job.value(), key.attempt.value());
  return replace_file(path_, text);
}

Result<bool> Strangers::add(const std::string& node, const proto::AttemptKey& key) {
  if (!all_.insert({node, key}).second) return false;
  TRY(save());
  return true;
}

Result<bool> Strangers::remove(const std::string& node, const proto::AttemptKey& key) {
  if (all_.erase({node, key}) == 0) return false;
  TRY(save());
  return true;
}

std::vector<proto::AttemptKey> Strangers::of(const std::string& node) const {
  std::vector<proto::AttemptKey> out;
  for (const auto& [where, key] : all_)
    if (where == node) out.push_back(key);
  return out;
}

bool Strangers::any_on(const std::string& node) const {
  const auto it = all_.lower_bound({node, proto::AttemptKey{}});
  return it != all_.end() && it->first == node;
}

std::string Strangers::on(const std::string& node) const {
  std::string out;
  for (auto it = all_.lower_bound({node, proto::AttemptKey{}});
       it != all_.end() && it->first == node; ++it)
    out += fmt::format("{}{}.{}", out.empty() ? "" : " ", it->second.job.value(),
                       it->second.attempt.value());
  return out;
}

}  // namespace gantry::age
