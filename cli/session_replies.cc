// How each reply is read: decoded, made printable, and joined from its pages. It is made here once
// for all replies, and not in every command.
#include "cli/session.h"
#include "common/codec/texts.h"
#include "common/text/printable.h"

namespace gantry::cli {
namespace {

// True for replies whose texts are data or are signed, and are not shown to people.
template <class Reply>
constexpr bool kIsData =
    std::is_same_v<Reply, proto::LogChunk> || std::is_same_v<Reply, proto::StepGranted> ||
    std::is_same_v<Reply, proto::TokenMade> || std::is_same_v<Reply, proto::AuditPage>;

void put_printable(std::string& text, Lines lines) {
  if (!is_printable(text, lines)) text = printable(text, lines);
}

}  // namespace

template <class Reply>
void make_printable(Reply& reply) {
  if constexpr (!kIsData<Reply>) {
    constexpr Lines kLines =
        std::is_same_v<Reply, proto::TenancyDocuments> ? Lines::many : Lines::one;
    codec::each_text(reply, [](std::string_view field, auto& text) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(text)>>)
        if (field != "script") put_printable(text, kLines);
    });
  }
}

template <class Reply>
Result<void> read_reply(const Bytes& body, void* reply) {
  ASSIGN(decoded, codec::decode<Reply>(body));
  auto& out = *static_cast<Reply*>(reply);
  out = std::move(*decoded);
  make_printable(out);
  return {};
}

template <class Reply, class Request>
Result<Reply> Session::read_pages(Request request, Duration timeout, Retry retry) {
  Pages<Request>::first(request);
  Reply whole;
  Patience patience;
  bool any = retry == Retry::patiently;
  while (true) {
    ASSIGN(id, send(request));
    auto page = receive<Reply>(*id, timeout);
    if (!page && any && page.error().code == ErrorCode::too_many && patience.pause()) continue;
    if (!page) return page;
    any = true;
    if (!Pages<Request>::add(whole, std::move(*page), request)) break;
    patience = Patience();
  }
  Pages<Request>::finish(whole);
  return whole;
}

#define GANTRY_KIND_session(type)
#define GANTRY_KIND_read(type)
#define GANTRY_KIND_write(type)
#define GANTRY_KIND_reply(type)                            \
  template void make_printable<proto::type>(proto::type&); \
  template Result<void> read_reply<proto::type>(const Bytes&, void*);
#define GANTRY_KIND_report(type)
#define GANTRY_KIND_order(type)
#define X(type, number, from, kind, ...) GANTRY_KIND_##kind(type)
#include "common/proto/messages.def"
#undef X

#define PAGES(request, reply) \
  template Result<proto::reply> Session::read_pages<proto::reply>(proto::request, Duration, Retry);
PAGES(ListNodes, ListNodesReply)
PAGES(ListPartitions, ListPartitionsReply)
PAGES(ShowConfig, ShowConfigReply)
PAGES(ShareTree, ShareTreeReply)
PAGES(PriorityTuples, PriorityTuplesReply)
PAGES(TenancyHistory, TenancyHistoryReply)
PAGES(ListAccess, AccessReply)
#undef PAGES

}  // namespace gantry::cli
