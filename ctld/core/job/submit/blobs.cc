// Hashes contents and fills them in; see blobs.h.
#include "ctld/core/job/submit/blobs.h"

#include <sodium.h>

#include "common/codec/codec.h"
#include "common/proto/job_query.h"
#include "common/proto/node_order.h"
#include "ctld/core/turn_out.h"
#include "ctld/store/store.h"

namespace gantry::core {

store::Digest digest_of(std::string_view contents) {
  store::Digest out{};
  static_assert(out.size() == crypto_generichash_BYTES);
  crypto_generichash(out.data(), out.size(),
                     reinterpret_cast<const unsigned char*>(contents.data()), contents.size(),
                     nullptr, 0);
  return out;
}

Result<void> fill(Order& order, const store::Store& store) {
  auto* launch = order.message.get_if<proto::Launch>();
  if (launch == nullptr) return {};
  if (order.blobs.script) {
    ASSIGN(script, store.read_blob(*order.blobs.script));
    launch->script = std::move(*script);
  }
  if (order.blobs.environment) {
    ASSIGN(bytes, store.read_blob(*order.blobs.environment));
    ASSIGN(blob, codec::decode<EnvironmentBlob>(*bytes));
    launch->environment = std::move(blob->variables);
  }
  return {};
}

Result<void> fill(Reply& reply, const store::Store& store) {
  auto* show = reply.message.get_if<proto::ShowJobReply>();
  if (show == nullptr) return {};
  for (std::size_t i = 0; i < reply.blobs.size() && i < show->jobs.size(); ++i) {
    if (!reply.blobs[i].script) continue;
    ASSIGN(script, store.read_blob(*reply.blobs[i].script));
    show->jobs[i].script = std::move(*script);
  }
  return {};
}

}  // namespace gantry::core
