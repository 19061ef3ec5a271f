#include "common/auth/munge.h"

#include <fmt/core.h>
#include <munge.h>

#include <cstdlib>
#include <memory>

namespace gantry::auth {
namespace {

struct ContextEnd {
  void operator()(munge_ctx* context) const { munge_ctx_destroy(context); }
};
using Context = std::unique_ptr<munge_ctx, ContextEnd>;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Malloced = std::unique_ptr<T, Free>;

Result<Context> make_context(const MungeOptions& options) {
  Context context(munge_ctx_create());
  if (!context) return fail(ErrorCode::internal, "munge: no memory");
  munge_err_t error = EMUNGE_SUCCESS;
  if (!options.socket.empty())
    error = munge_ctx_set(context.get(), MUNGE_OPT_SOCKET, options.socket.c_str());
  if (error == EMUNGE_SUCCESS && options.lifetime_seconds > 0)
    error = munge_ctx_set(context.get(), MUNGE_OPT_TTL, options.lifetime_seconds);
  if (error != EMUNGE_SUCCESS)
    return fail(ErrorCode::invalid_argument, fmt::format("munge: {}", munge_strerror(error)));
  return context;
}

// True if munged itself failed or could not be reached.
bool is_trouble(munge_err_t error) {
  return error == EMUNGE_SNAFU || error == EMUNGE_NO_MEMORY || error == EMUNGE_SOCKET ||
         error == EMUNGE_TIMEOUT;
}

Error describe(munge_err_t error, munge_ctx* context) {
  const char* detail = munge_ctx_strerror(context);
  const std::string text = detail != nullptr ? detail : munge_strerror(error);
  if (is_trouble(error))
    return {ErrorCode::unavailable, fmt::format("the munge daemon does not answer: {}", text)};
  return {ErrorCode::unauthenticated, fmt::format("the munge credential is refused: {}", text)};
}

}  // namespace

Result<Bytes> munge_encode(const net::PublicKey& session, const MungeOptions& options) {
  ASSIGN(context, make_context(options));
  char* raw = nullptr;
  const munge_err_t error =
      ::munge_encode(&raw, context->get(), session.bytes.data(), static_cast<int>(net::kKeyBytes));
  const Malloced<char> credential(raw);
  if (error != EMUNGE_SUCCESS) return tl::unexpected(describe(error, context->get()));
  return Bytes(credential.get());
}

Result<MungeIdentity> munge_decode(std::string_view credential, const net::PublicKey& session,
                                   const MungeOptions& options) {
  ASSIGN(context, make_context(options));
  const std::string text(credential);  // including the terminating zero that munge needs
  if (text.find('\0') != std::string::npos)
    return fail(ErrorCode::unauthenticated, "the munge credential is refused: it has a zero byte");
  void* raw = nullptr;
  int size = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t error = ::munge_decode(text.c_str(), context->get(), &raw, &size, &uid, &gid);
  const Malloced<void> payload(raw);  // also set for some refused credentials
  if (error != EMUNGE_SUCCESS) {
    Error refused = describe(error, context->get());
    // munged could decode these refused credentials, and tells whose they are.
    if (error == EMUNGE_CRED_EXPIRED || error == EMUNGE_CRED_REWOUND ||
        error == EMUNGE_CRED_REPLAYED)
      refused.message += fmt::format(" (of uid {})", uid);
    return tl::unexpected(std::move(refused));
  }
  const std::string_view covered(static_cast<const char*>(payload.get()),
                                 static_cast<std::size_t>(size));
  if (covered != session.view())
    return fail(ErrorCode::unauthenticated, "the munge credential was made for another connection");
  return MungeIdentity{.uid = Uid(uid), .gid = Gid(gid)};
}

}  // namespace gantry::auth
