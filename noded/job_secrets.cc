#include "noded/job_secrets.h"

#include <sodium.h>

#include <algorithm>
#include <utility>

#include "noded/runtime/job_dir.h"
#include "noded/runtime/secret_files.h"

namespace gantry::node {
namespace {

constexpr Duration kLookEach = seconds(5);
constexpr Duration kAskAgain = seconds(10);  // pause if the controller has not answered
// New tokens are requested when this part of their lifetime is over.
constexpr std::int64_t kPartOfLife = 2, kPartsOfLife = 3;

void wipe(Bytes& content) {
  sodium_memzero(content.data(), content.size());
  content.clear();
}

Duration lasts(const std::vector<proto::IdentityToken>& tokens) {
  Duration least = hours(24);
  for (const proto::IdentityToken& one : tokens) least = std::min(least, one.lasts);
  return least;
}

Duration now() {
  const runtime::Uptime up =
      runtime::uptime();  // a clock that counts while the machine sleeps, too
  return up.awake + up.asleep;
}

Duration renew_at(const std::vector<proto::IdentityToken>& tokens) {
  return now() + Duration{lasts(tokens).us * kPartOfLife / kPartsOfLife};
}

}  // namespace

JobSecrets::JobSecrets(loop::Loop& loop, std::string state_dir,
                       std::function<void(const AttemptKey&)> due, const Logger& log)
    : loop_(loop), state_dir_(std::move(state_dir)), due_(std::move(due)), log_(log) {}

Result<void> JobSecrets::begin(proto::Launch& launch, runtime::LaunchRequest& request) {
  TRY(keep_store_keys(launch, request));
  if (launch.secrets.empty() && launch.identity.empty()) return {};
  std::vector<runtime::SecretText> files;
  for (const proto::SecretFile& one : launch.secrets) files.push_back({one.file, one.content});
  for (const proto::IdentityToken& one : launch.identity) files.push_back({one.file, one.token});
  auto written = runtime::write_secrets(state_dir_, launch.key, launch.owner, files);
  for (proto::SecretFile& one : launch.secrets) wipe(one.content);
  for (proto::IdentityToken& one : launch.identity) wipe(one.token);
  if (!written) return tl::unexpected(written.error());
  request.secrets_dir = std::move(*written);
  request.has_tokens = !launch.identity.empty();
  held_[launch.key] = {launch.owner, request.has_tokens, renew_at(launch.identity)};
  set_timer();
  return {};
}

Result<void> JobSecrets::keep_store_keys(proto::Launch& launch,
                                         const runtime::LaunchRequest& request) {
  const auto keys = std::ranges::find_if(
      launch.secrets, [](const auto& one) { return one.file == proto::kStoreKeys; });
  if (keys == launch.secrets.end()) return {};
  const auto kept = runtime::write_store_keys(state_dir_, launch.key, keys->content);
  wipe(keys->content);
  launch.secrets.erase(keys);
  if (kept) held_[launch.key] = {request.owner, false, Duration{}};
  return kept;
}

void JobSecrets::adopt(const runtime::LaunchRequest& request) {
  if (request.secrets_dir.empty() && !request.objects) return;
  held_[request.key] = {request.owner, request.has_tokens, Duration{}};
  set_timer();
}

void JobSecrets::renew(proto::IdentityTokens& answer) {
  const auto it = held_.find(answer.key);
  if (it == held_.end() || !it->second.has_tokens || answer.tokens.empty()) return;
  for (proto::IdentityToken& one : answer.tokens) {
    const auto done =
        runtime::replace_secret(state_dir_, answer.key, it->second.owner, {one.file, one.token});
    wipe(one.token);
    if (!done)
      log_.warning("an identity token could not be renewed",
                   {{"job", answer.key.job}, {"why", done.error().message}});
  }
  it->second.renew_at = renew_at(answer.tokens);
}

void JobSecrets::end(const AttemptKey& key) {
  if (held_.erase(key) == 0) return;
  runtime::remove_secrets(state_dir_, key);
  set_timer();
}

void JobSecrets::sweep() {
  for (const AttemptKey& key : runtime::attempts_with_secrets(state_dir_))
    if (!held_.contains(key)) runtime::remove_secrets(state_dir_, key);
}

void JobSecrets::set_timer() {
  const bool any = std::ranges::any_of(held_, [](const auto& h) { return h.second.has_tokens; });
  if (any == looks_) return;
  looks_ = any;
  timer_ = any ? loop_.every(kLookEach, [this] { look(); }) : loop::Watch{};
}

void JobSecrets::look() {
  std::vector<AttemptKey> due;
  for (auto& [key, held] : held_) {
    if (!held.has_tokens || now() < held.renew_at) continue;
    held.renew_at = now() + kAskAgain;
    due.push_back(key);
  }
  for (const AttemptKey& key : due) due_(key);
}

}  // namespace gantry::node
