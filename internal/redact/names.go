package redact

import "strings"

// Where the names come from: the default deny lists and filters of the Sentry
// SDK for Python, Rails (new applications), Django (hidden settings),
// OpenTelemetry (url.query), gitleaks (generic API key words), and the
// documentation of the services named beside them. All are in the form that
// normal makes: lower case, without - _ . and spaces.

// headerNames are headers known by their whole name.
var headerNames = set(`
	authorization proxyauthorization authentication authenticationinfo
	proxyauthenticationinfo wwwauthenticate proxyauthenticate
	cookie cookie2 setcookie setcookie2
	xapikey apikey xauthtoken xaccesstoken xcsrftoken xxsrftoken
	xamzsecuritytoken xgoogapikey ocpapimsubscriptionkey xvaulttoken
	privatetoken jobtoken xgitlabtoken xfunctionskey
	xclientkey xconsumerkey xlicensekey
	dpop sessionid phpsessid
`)

// headerWords make a header a credential wherever they occur in its name.
// "token" has its own rule: see hasToken.
var headerWords = []string{
	"secret", "password", "passwd", "passphrase", "credential", "signature",
	"authorization", "bearer", "jwt", "csrf", "xsrf", "cookie",
	"apikey", "accesskey", "subscriptionkey", "masterkey", "privatekey",
	"appkey", "authkey", "adminkey",
}

// queryNames are query and form keys known by their whole name. Some (key, auth,
// pass, pin, session) are honest names in other APIs; they are refused all the
// same, because each is the credential of a widely used one: key of Google, sid
// of several session schemes.
var queryNames = set(`
	apikey apikeyid xapikey apitoken xapitoken apisecret apipassword
	key token accesstoken xaccesstoken refreshtoken idtoken authtoken xauthtoken
	bearertoken usertoken sessiontoken securitytoken privatetoken jobtoken
	oauthtoken oauthtokensecret tokensecret accesstokensecret oauthsignature oauthconsumerkey oauthverifier
	password passwd pwd pass passphrase userpassword mysqlpwd
	secret clientsecret clientassertion assertion secretkey
	auth authorization authentication authkey bearer credential credentials
	session sessionid sid sessid jsessionid phpsessid connectsid aspsessionid
	jwt sig signature hmac
	codeverifier otp totp pin
	privatekey accesskey accesskeyid secretaccesskey awsaccesskeyid awssecretaccesskey
	xamzsignature xamzcredential xamzsecuritytoken xgoogsignature xgoogcredential
	hapikey appkey appsecret consumerkey consumersecret
	subscriptionkey ocpapimsubscriptionkey licensekey masterkey
	csrf csrftoken csrfmiddlewaretoken xcsrftoken xsrf xsrftoken authenticitytoken
`)

// codeNames are keys that most often hold a country, a product or a status, and
// sometimes the key of an Azure Function or an OAuth code: their values decide.
var codeNames = set("code")

// longCode is the shortest value, in bytes, that is taken for a key: an OAuth
// code has 20 at least with the services seen, a function's key has 44 and more,
// and what people call a code is shorter.
const longCode = 20

// honestNames are those of queryNames and codeNames that mean a credential alone
// but not behind another word and a mark: country:code, sort/key.
var honestNames = set("key code pin session auth pass")

// keyNames are keys of data known by their whole name.
var keyNames = set(`
	pwd passwd pass auth otp totp cvv cvc ssn jwt hmac sessionid
	phpsessid jsessionid connectsid sig
`)

// keyWords hide the value of a key wherever they occur in its name.
var keyWords = []string{
	"secret", "password", "passwd", "passphrase", "credential",
	"authorization", "bearer", "signature", "cookie", "csrf", "xsrf",
	"apikey", "accesskey", "privatekey", "masterkey", "subscriptionkey",
	"licensekey", "authkey", "sessionkey", "encryptionkey", "signingkey",
}

// tokenFollowers and tokenLeaders tell a counted or a page's token from a
// credential: max_tokens, token_count, nextPageToken, X-Continuation-Token.
var (
	tokenFollowers = []string{"iz", "count", "limit", "usage", "budget", "scount", "slimit", "susage", "sused", "sbudget", "sremaining"}
	tokenLeaders   = []string{"page", "next", "prev", "previous", "continuation", "sync", "cursor", "pagination", "start", "resume"}
)

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
