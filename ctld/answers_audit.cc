// The audit log for auditors who are not on this machine.
#include "ctld/answers.h"

#include "common/audit/audit_reader.h"
#include "common/codec/codec.h"

namespace gantry::ctld {
namespace {

constexpr std::size_t kMostPageBytes = 2u << 20;

}  // namespace

void Answers::read_audit(const Asked& asked, const proto::ReadAudit& message) {
  const std::string directory = shell_.config.controller.state_dir + "/audit";
  const std::size_t most = message.most == 0 || message.most > proto::kMostAuditLines
                               ? proto::kMostAuditLines
                               : message.most;
  auto page = message.newest ? audit::newest_page(directory, most, kMostPageBytes)
                             : audit::page_after(directory, message.after, most, kMostPageBytes);
  if (!page) return connections_.refuse(asked.session, asked.request, page.error());
  const proto::AuditPage reply{std::move(page->lines), page->more};
  connections_.send(asked.session, asked.request, reply);
}

}  // namespace gantry::ctld
