// Enrolment tokens and keys of nodes: made, listed, revoked. See common/proto/control.h.
#include <algorithm>

#include <fmt/core.h>

#include "common/proto/control.h"
#include "common/text/text.h"
#include "ctld/core/context.h"
#include "ctld/core/event/events_cluster.h"
#include "ctld/core/handler.h"
#include "ctld/core/node/enrollment.h"
#include "ctld/core/node/subject.h"
#include "ctld/core/node_links.h"
#include "ctld/core/request.h"
#include "ctld/core/runtime.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

constexpr Duration kShortest = minutes(1);
constexpr Duration kLongest = hours(24 * 30);
constexpr std::size_t kMostTokens = 10'000;
constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kIdDigits = 12;

std::string id_of(const std::string& hash) {
  return hash.substr(0, kIdDigits);
}

bool is_hash(const std::string& text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<const Node*> declared_node(const State& state, const std::string& name) {
  const Node* node = state.node_named(name);
  if (node == nullptr || node->declared == nullptr)
    return fail(ErrorCode::not_found, fmt::format("there is no node {}", name));
  return node;
}

void forget_expired(Context& ctx) {
  event::EnrollTokensGone gone;
  for (const auto& [hash, token] : ctx.state.enroll_tokens)
    if (token.expires <= ctx.now) gone.hashes.push_back(hash);
  if (!gone.hashes.empty()) ctx.record(gone);
}

Result<void> make(Context& ctx, const std::string& by, const proto::ChangeEnrollment& m) {
  TRY(declared_node(ctx.state, m.node));
  if (!is_hash(m.hash))
    return fail(ErrorCode::invalid_argument,
                fmt::format("the hash of a token has {} hex digits", kHashDigits));
  if (m.valid < kShortest || m.valid > kLongest)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a token is valid for {} to {}, not {}", format_duration(kShortest),
                            format_duration(kLongest), format_duration(m.valid)));
  if (ctx.state.enroll_tokens.size() >= kMostTokens)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("there are {} tokens that were not used; take some back", kMostTokens));
  if (ctx.state.enroll_tokens.contains(m.hash))
    return fail(ErrorCode::already_exists, "there is such a token already");
  ctx.record(event::EnrollTokenMade{m.hash, m.node, ctx.now + m.valid, by});
  return {};
}

Result<void> revoke(Context& ctx, const std::string& what) {
  event::EnrollTokensGone gone;
  for (const auto& [hash, token] : ctx.state.enroll_tokens)
    if (id_of(hash) == what || token.node == what) gone.hashes.push_back(hash);
  if (gone.hashes.empty())
    return fail(ErrorCode::not_found,
                fmt::format("there is no token \"{}\", and none for a node of this name", what));
  ctx.record(gone);
  return {};
}

// The jobs of the node continue; it counts as lost until it comes back with its next key.
Result<void> revoke_key(Context& ctx, const std::string& name) {
  ASSIGN(node, declared_node(ctx.state, name));
  if ((*node)->public_key.empty())
    return fail(ErrorCode::not_found, fmt::format("node {} has no key", name));
  const NodeId id = (*node)->id;
  ctx.rt.links->all.at(id.value()).session = 0;
  ctx.record(event::NodeEnrolled{id, ""});
  ctx.record(event::NodeHealthChanged{id, NodeHealth::down, "its key was taken back"});
  return {};
}

proto::EnrollmentList list_of(const State& state) {
  proto::EnrollmentList out;
  for (const auto& [hash, token] : state.enroll_tokens)
    out.tokens.push_back({id_of(hash), token.node, token.made, token.expires, token.by});
  std::stable_sort(out.tokens.begin(), out.tokens.end(),
                   [](const auto& a, const auto& b) { return a.node < b.node; });
  for (const NodeId id : state.node_order)
    out.nodes.push_back({state.node(id).name, state.node(id).public_key});
  return out;
}

}  // namespace

bool token_counts(const State& state, Instant now, const std::string& hash,
                  const std::string& node) {
  const auto it = state.enroll_tokens.find(hash);
  return it != state.enroll_tokens.end() && it->second.node == node && now < it->second.expires;
}

static void handle(Context& ctx, const ClientRequest& from, proto::ChangeEnrollment&& m) {
  forget_expired(ctx);
  const int asked =
      (m.hash.empty() ? 0 : 1) + (m.revoke.empty() ? 0 : 1) + (m.revoke_key.empty() ? 0 : 1);
  Result<void> done;
  if (asked != 1)
    done = fail(ErrorCode::invalid_argument, "make a token, or take one back, or a node's key");
  else if (!m.hash.empty())
    done = make(ctx, from.who.owner.user, m);
  else if (!m.revoke.empty())
    done = revoke(ctx, m.revoke);
  else
    done = revoke_key(ctx, m.revoke_key);
  if (!done) return refuse(ctx, from, done.error());
  ctx.reply(from, list_of(ctx.state));
}

static void handle(Context& ctx, const ClientRequest& from, proto::ListEnrollment&&) {
  proto::EnrollmentList list = list_of(ctx.state);
  std::erase_if(list.tokens, [&](const auto& row) { return row.expires <= ctx.now; });
  ctx.reply(from, std::move(list));
}

const Subject kEnrollmentMessages{
    .name = "enrollment", .handlers = kHandlers<proto::ChangeEnrollment, proto::ListEnrollment>};

}  // namespace gantry::core
