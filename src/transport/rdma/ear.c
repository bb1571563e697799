/* ear.c - what an adapter says unasked: that a queue pair is empty, or broken; that a port went
 * down.
 *
 *   async descriptor ─▶ whichever reactor looks first ─▶ the thing's own reactor ─▶ heard()
 *                                     └ of the adapter itself ─▶ every reactor that uses it ─▶ fatal()
 *
 * An adapter has one descriptor for a process, and what is read from it is gone for the others. So
 * every user watches, one reads, and hands on. Whose a thing is, is found before the event is
 * acknowledged: until then it cannot be destroyed, nor another be made in its place. A program may
 * have queue pairs of its own on the adapter; nothing but the address is looked at. */
#include "transport/rdma/ear.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all ears */

/* --- reading ---------------------------------------------------------------------------------- */

/* Under the lock. */
static void call(struct rdma_ear *ear)
{
	if (ear->posted)
		return;
	ear->posted = true;
	weft_reactor_post(ear->reactor, &ear->msg);
}

static struct rdma_news *among(struct weft_list *list, const void *thing)
{
	struct rdma_news *news;

	weft_list_for_each(news, list, link)
		if (news->thing == thing)
			return news;
	return NULL;
}

static struct rdma_news *news_of(struct rdma_dev *dev, const void *thing)
{
	struct rdma_news *news = NULL;
	struct rdma_ear *ear;

	weft_list_for_each(ear, &dev->ears, link) {
		news = among(&ear->said, thing);
		if (!news)
			news = among(&ear->silent, thing);
		if (news)
			break;
	}
	return news;
}

static void tell_one(struct rdma_dev *dev, const void *thing, enum ibv_event_type type)
{
	struct rdma_news *news;

	pthread_mutex_lock(&lock);
	news = news_of(dev, thing);
	if (news) {
		news->types |= 1u << type;
		weft_list_remove(&news->link);
		weft_list_push(&news->ear->said, &news->link);
		call(news->ear);
	}
	pthread_mutex_unlock(&lock);
}

static void tell_all(struct rdma_dev *dev)
{
	struct rdma_ear *ear;

	weft_error("%s: the adapter failed; connections over it end", dev->ctx->device->name);
	rdma_devs_removed();
	pthread_mutex_lock(&lock);
	weft_list_for_each(ear, &dev->ears, link) {
		ear->failed = true;
		call(ear);
	}
	pthread_mutex_unlock(&lock);
}

static void take_in(struct rdma_dev *dev, const struct ibv_async_event *event)
{
	const char *name = dev->ctx->device->name;

	switch (event->event_type) {
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		tell_one(dev, event->element.qp, event->event_type);
		break;
	case IBV_EVENT_CQ_ERR:
		tell_one(dev, event->element.cq, event->event_type);
		break;
	case IBV_EVENT_SRQ_ERR:
		tell_one(dev, event->element.srq, event->event_type);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		tell_all(dev);
		break;
	case IBV_EVENT_PORT_ERR:
		weft_warn("%s: port %d is down: is there a link?", name, event->element.port_num);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		weft_info("%s: port %d is up", name, event->element.port_num);
		break;
	default:
		weft_debug("%s: %s", name, ibv_event_type_str(event->event_type));
		break;
	}
}

static void readable(struct rdma_watch *watch)
{
	struct rdma_dev *dev = container_of(watch, struct rdma_ear, watch)->dev;
	struct ibv_async_event event;

	while (!rdma_verbs->get_async_event(dev->ctx, &event)) {
		take_in(dev, &event);
		rdma_verbs->ack_async_event(&event);
	}
}

/* --- hearing ---------------------------------------------------------------------------------- */

/* What was said of something here, one at a time; NULL: nothing more. */
static struct rdma_news *next(struct rdma_ear *ear, enum ibv_event_type *type)
{
	struct rdma_news *news = NULL;

	pthread_mutex_lock(&lock);
	if (!weft_list_empty(&ear->said)) {
		news = container_of(ear->said.next, struct rdma_news, link);
		*type = (enum ibv_event_type)__builtin_ctz(news->types);
		news->types &= news->types - 1;
		if (!news->types) {
			weft_list_remove(&news->link);
			weft_list_push(&ear->silent, &news->link);
		}
	}
	pthread_mutex_unlock(&lock);
	return news;
}

static bool take_failure(struct rdma_ear *ear)
{
	bool failed;

	pthread_mutex_lock(&lock);
	failed = ear->failed;
	ear->failed = ear->posted = false;
	pthread_mutex_unlock(&lock);
	return failed;
}

static void end_if_over(struct rdma_ear *ear)
{
	bool over;

	pthread_mutex_lock(&lock);
	over = ear->ending && !ear->watching && !ear->posted;
	pthread_mutex_unlock(&lock);
	if (over)
		ear->ended(ear);
}

static void called(struct weft_msg *msg)
{
	struct rdma_ear *ear = container_of(msg, struct rdma_ear, msg);
	bool failed = take_failure(ear);
	enum ibv_event_type type;
	struct rdma_news *news;

	if (failed && !ear->ending)
		ear->fatal(ear);
	while ((news = next(ear, &type)))
		news->heard(news, type);
	end_if_over(ear);
}

void rdma_news_start(struct rdma_news *news, struct rdma_ear *ear, const void *thing)
{
	news->ear = ear;
	news->thing = thing;
	news->types = 0;
	pthread_mutex_lock(&lock);
	weft_list_push(&ear->silent, &news->link);
	pthread_mutex_unlock(&lock);
}

void rdma_news_end(struct rdma_news *news)
{
	if (!news->ear)
		return;
	pthread_mutex_lock(&lock);
	weft_list_remove(&news->link);
	pthread_mutex_unlock(&lock);
	news->ear = NULL;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void watch_ended(struct rdma_watch *watch)
{
	struct rdma_ear *ear = container_of(watch, struct rdma_ear, watch);

	ear->watching = false;
	end_if_over(ear);
}

int rdma_ear_start(struct rdma_ear *ear, struct rdma_dev *dev, struct weft_reactor *r,
		   struct weft_err *err)
{
	int rc;

	ear->dev = dev;
	ear->reactor = r;
	ear->msg.fn = called;
	ear->watch.readable = readable;
	ear->watch.ended = watch_ended;
	weft_list_init(&ear->silent);
	weft_list_init(&ear->said);
	rc = rdma_watch_start(&ear->watch, r, dev->ctx->async_fd);
	if (rc < 0)
		return weft_fail(err, rc, "%s: events: %s", dev->ctx->device->name, strerror(-rc));
	ear->watching = true;
	pthread_mutex_lock(&lock);
	weft_list_push(&dev->ears, &ear->link);
	pthread_mutex_unlock(&lock);
	return 0;
}

void rdma_ear_end(struct rdma_ear *ear)
{
	pthread_mutex_lock(&lock);
	assert(weft_list_empty(&ear->silent) && weft_list_empty(&ear->said));
	weft_list_remove(&ear->link);
	ear->ending = true;
	pthread_mutex_unlock(&lock);
	rdma_watch_end(&ear->watch);
}
